! What the modules weir and weir_ranks share: failures, strings and times. Not for programs.
module weir_support
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: report, c_string, f_string, nanoseconds, is_true

  integer, parameter :: MESSAGE_LENGTH = 512

  interface
    subroutine weir_fortran_message_c(text, capacity) bind(C, name="weir_fortran_message")
      import
      character(kind=c_char), intent(out) :: text(*)
      integer(c_size_t), value :: capacity
    end subroutine
  end interface

contains

  !> Hands a status and its message to the caller, or stops.
  subroutine report(status, stat, errmsg)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char, len=MESSAGE_LENGTH) :: message
    if (present(stat)) stat = int(status)
    if (status == 0) return
    call weir_fortran_message_c(message, int(MESSAGE_LENGTH, c_size_t))
    if (present(errmsg)) errmsg = message
    if (.not. present(stat)) error stop "weir: " // trim(message)
  end subroutine

  !> A string for C; nothing is the empty one.
  function c_string(text) result(terminated)
    character(*), intent(in), optional :: text
    character(kind=c_char, len=:), allocatable :: terminated
    terminated = c_null_char
    if (present(text)) terminated = trim(text) // c_null_char
  end function

  !> A string of C; NULL is the empty one.
  function f_string(text) result(string)
    type(c_ptr), intent(in) :: text
    character(:), allocatable :: string
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    string = ""
    if (.not. c_associated(text)) return
    call c_f_pointer(text, letters, [MESSAGE_LENGTH])
    do i = 1, size(letters)
      if (letters(i) == c_null_char) exit
      string = string // letters(i)
    end do
  end function

  !> A timeout for C: without one it never expires.
  integer(c_int64_t) function nanoseconds(timeout)
    real(real64), intent(in), optional :: timeout
    nanoseconds = -1
    if (present(timeout)) nanoseconds = int(max(0._real64, min(timeout, 9e9_real64)) * 1e9_real64, c_int64_t)
  end function

  pure logical(c_bool) function is_true(given)
    logical, intent(in), optional :: given
    is_true = .false.
    if (present(given)) is_true = logical(given, c_bool)
  end function
end module
