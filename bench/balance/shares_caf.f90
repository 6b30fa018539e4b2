! Master and workers in Coarray Fortran, as paper 004 has them: images fetch items from a counter of
! image 1, one or several at a time. Image i computes i times as fast as the first; the last one
! becomes slower by SLOW_BY when half of the work is done, if all images were always busy.
!
!   shares_caf makespan|visits ITEMS MICROSECONDS CHUNK SLOW_BY
program shares_caf
  use, intrinsic :: iso_fortran_env, only: atomic_int_kind, int64, real64
  implicit none
  integer(atomic_int_kind) :: counter[*]
  character(len=32) :: verb
  integer :: items, chunk, slow_by
  real(real64) :: item_s

  call get_command_argument(1, verb)
  items = argument(2)
  item_s = 1e-6_real64 * argument(3)
  chunk = argument(4)
  slow_by = argument(5)
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

  ! From slow_at on the last image takes slow_by times as long.
  subroutine compute(seconds, slow_at)
    real(real64), intent(in) :: seconds, slow_at
    real(real64) :: end, turn
    turn = now()
    end = turn + seconds
    turn = max(turn, slow_at)
    if (this_image() == num_images() .and. end > turn) end = turn + (end - turn) * slow_by
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
    integer :: done, mine, speeds, last
    real(real64) :: start, half, ideal
    done = 0
    last = num_images()
    speeds = last * (last + 1) / 2
    half = items * item_s / speeds / 2
    ideal = half + items * item_s / 2 / (speeds - last + real(last, real64) / slow_by)
    start = now()
    do
      first = fetched(chunk)
      if (first >= items) exit
      mine = min(chunk, items - first)
      call compute(mine * item_s / this_image(), start + half)
      done = done + mine
    end do
    sync all
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
    if (this_image() == 1) call compute(items * item_s, huge(0.0_real64))
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
