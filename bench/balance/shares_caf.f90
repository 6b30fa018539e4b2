! Master and workers in Coarray Fortran, as paper 004 has them: images fetch items from a counter of
! image 1, one or several at a time. Image i computes i times as fast as the first.
!
!   shares_caf makespan|visits ITEMS MICROSECONDS CHUNK
program shares_caf
  use, intrinsic :: iso_fortran_env, only: atomic_int_kind, int64, real64
  implicit none
  integer(atomic_int_kind) :: counter[*]
  character(len=32) :: verb
  integer :: items, chunk
  real(real64) :: item_s

  call get_command_argument(1, verb)
  items = argument(2)
  item_s = 1e-6_real64 * argument(3)
  chunk = argument(4)
  call atomic_define(counter[this_image()], 0)
  sync all
  if (verb == 'visits') then
    call measure_visits()
  else
    call measure_makespan()
  end if

contains

  integer function argument(index)
    integer, intent(in) :: index
    character(len=32) :: text
    call get_command_argument(index, text)
    read (text, *) argument
  end function argument

  real(real64) function now()
    integer(int64) :: ticks, rate
    call system_clock(ticks, rate)
    now = real(ticks, real64) / real(rate, real64)
  end function now

  subroutine compute(seconds)
    real(real64), intent(in) :: seconds
    real(real64) :: end
    end = now() + seconds
    do while (now() < end)
    end do
  end subroutine compute

  ! Adds to the counter. OpenCoarrays 2.10 adds by atomic_fetch_add, but does not say what was there.
  integer(atomic_int_kind) function fetched(count)
    integer, intent(in) :: count
    integer(atomic_int_kind) :: seen
    call atomic_ref(seen, counter[1])
    do
      call atomic_cas(counter[1], fetched, seen, seen + count)
      if (fetched == seen) exit
      seen = fetched
    end do
  end function fetched

  subroutine measure_makespan()
    integer(atomic_int_kind) :: first
    integer :: done, mine
    real(real64) :: start, ideal
    done = 0
    start = now()
    do
      first = fetched(chunk)
      if (first >= items) exit
      mine = min(chunk, items - first)
      call compute(mine * item_s / this_image())
      done = done + mine
    end do
    sync all
    ideal = items * item_s / sum([(mine, mine = 1, num_images())])
    start = now() - start
    call co_sum(done, result_image=1)
    if (this_image() /= 1) return
    if (done /= items) error stop 'not every item was handed out once'
    call report(start / ideal)
  end subroutine measure_makespan

  ! Image 1 computes, and answers nobody.
  subroutine measure_visits()
    integer(atomic_int_kind) :: old
    integer :: i
    real(real64) :: start
    real(real64), save :: taken[*]
    if (this_image() == 1) call compute(items * item_s)
    if (this_image() == 2) then
      start = now()
      do i = 1, items
        old = fetched(1)
      end do
      taken[1] = (now() - start) / items
    end if
    sync all
    if (this_image() == 1) call report(1e9_real64 * taken)
  end subroutine measure_visits

  subroutine report(value)
    real(real64), intent(in) :: value
    write (*, '(a, es16.9, a, i0, a, i0, a)') '{"value":', value, ', "config":"', num_images(), &
      ' images, chunks of ', chunk, '"}'
  end subroutine report

end program shares_caf
