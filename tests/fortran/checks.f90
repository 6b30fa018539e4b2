! Counts what is not as it should be.
module checks
  implicit none
  private
  public :: expect, finish
  integer :: checked = 0, failed = 0
contains
  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    checked = checked + 1
    if (good) return
    failed = failed + 1
    print "('wrong: ', a)", what
  end subroutine

  subroutine finish(what)
    character(*), intent(in) :: what
    print "(a, ': ', i0, ' checks, ', i0, ' failed')", what, checked, failed
    if (failed > 0 .or. checked == 0) error stop 1
  end subroutine
end module
