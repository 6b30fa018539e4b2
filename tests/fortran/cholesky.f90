! A tiled Cholesky factorisation with the built-in kernels, and a stencil with a kernel in Fortran:
! on the streams of a domain, and as tasks on all of them.
!
!   cholesky DOMAINS
program cholesky
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use weir
  use checks
  implicit none
  character(256) :: domains
  type(weir_runtime) :: runtime

  call get_command_argument(1, domains)
  call weir_runtime_create(runtime, trim(domains))
  call check_factor(.false.)
  call check_factor(.true.)
  call check_stencil
  call weir_runtime_destroy(runtime)
  call finish("cholesky on " // trim(domains))

contains

  !> Enqueues one kernel on the stream, or as a task.
  subroutine enqueue(stream, queue, tasks, name, operands, scalars)
    type(weir_stream), intent(in) :: stream
    type(weir_queue), intent(in) :: queue
    logical, intent(in) :: tasks
    character(*), intent(in) :: name
    type(weir_operand), intent(in) :: operands(:)
    type(weir_scalar_argument), intent(in) :: scalars(:)
    type(weir_kernel) :: kernel
    call weir_kernel_find(runtime, name, kernel)
    if (tasks) then
      call weir_queue_submit(queue, kernel, operands, scalars)
    else
      call weir_stream_compute(stream, kernel, operands, scalars)
    end if
  end subroutine

  subroutine check_factor(tasks)
    logical, intent(in) :: tasks
    integer, parameter :: n = 120, tile = 24, tiles = n / tile
    real(real64), allocatable, target :: a(:, :)
    real(real64), allocatable :: original(:, :), lower(:, :)
    type(weir_place) :: place
    type(weir_stream) :: stream
    type(weir_queue) :: queue
    type(weir_buffer) :: buffer
    type(weir_domain) :: domain
    integer :: i, j, k

    allocate (a(n, n))
    call random_number(a)
    a = matmul(a, transpose(a))
    do i = 1, n
      a(i, i) = a(i, i) + n
    end do
    original = a
    call weir_buffer_wrap(runtime, a, buffer, "A")
    if (tasks) then
      call weir_queue_create(runtime, queue, models=.false.)
    else
      domain = weir_runtime_get_domain(runtime, weir_runtime_domain_count(runtime))
      call weir_place_create(domain, place)
      call weir_stream_create(place, stream)
      call weir_stream_upload(stream, weir_readwrite(buffer))
    end if
    associate (lo => [(1 + (k - 1) * tile, k=1, tiles)], hi => [(k * tile, k=1, tiles)])
      do k = 1, tiles
        call enqueue(stream, queue, tasks, "lapack.dpotrf", &
                     [weir_readwrite(buffer, a(lo(k):hi(k), lo(k):hi(k)))], &
                     [weir_scalar("L"), weir_scalar(lo(k) - 1)])
        do i = k + 1, tiles
          call enqueue(stream, queue, tasks, "blas.dtrsm", &
                       [weir_read(buffer, a(lo(k):hi(k), lo(k):hi(k))), &
                        weir_readwrite(buffer, a(lo(i):hi(i), lo(k):hi(k)))], &
                       [weir_scalar("R"), weir_scalar("L"), weir_scalar("T"), weir_scalar("N"), &
                        weir_scalar(1._real64)])
        end do
        do j = k + 1, tiles
          call enqueue(stream, queue, tasks, "blas.dsyrk", &
                       [weir_read(buffer, a(lo(j):hi(j), lo(k):hi(k))), &
                        weir_readwrite(buffer, a(lo(j):hi(j), lo(j):hi(j)))], &
                       [weir_scalar("L"), weir_scalar("N"), weir_scalar(-1._real64), weir_scalar(1._real64)])
          do i = j + 1, tiles
            call enqueue(stream, queue, tasks, "blas.dgemm", &
                         [weir_read(buffer, a(lo(i):hi(i), lo(k):hi(k))), &
                          weir_read(buffer, a(lo(j):hi(j), lo(k):hi(k))), &
                          weir_readwrite(buffer, a(lo(i):hi(i), lo(j):hi(j)))], &
                         [weir_scalar("N"), weir_scalar("T"), weir_scalar(-1._real64), weir_scalar(1._real64)])
          end do
        end do
      end do
    end associate
    if (tasks) then
      call weir_queue_synchronize(queue)
      call weir_queue_destroy(queue)
    else
      call weir_stream_download(stream, weir_readwrite(buffer))
      call weir_stream_synchronize(stream)
      call weir_place_destroy(place)
    end if
    call weir_buffer_destroy(buffer)

    lower = a
    do j = 2, n
      lower(:j - 1, j) = 0
    end do
    call expect(maxval(abs(matmul(lower, transpose(lower)) - original)) < 1e-9_real64 * n * n, "L L^T = A")
  end subroutine

  subroutine check_stencil
    integer, parameter :: rows = 40, columns = 30, block = 10, steps = 6
    real(real32), target :: old(rows, columns), new(rows, columns)
    real(real32) :: reference(rows, columns), next(rows, columns)
    type(weir_queue) :: queue
    type(weir_buffer) :: from, to, swapped
    type(weir_kernel) :: kernel
    integer :: step, j

    call random_number(old)
    new = old
    reference = old
    call weir_buffer_wrap(runtime, old, from, "old")
    call weir_buffer_wrap(runtime, new, to, "new")
    call weir_kernel_register(runtime, "stencil", stencil, kernel)
    call weir_queue_create(runtime, queue, models=.false., max_in_flight=16)
    do step = 1, steps
      do j = 2, columns - 1, block
        associate (last => min(j + block - 1, columns - 1))
          if (mod(step, 2) == 1) then
            call weir_queue_submit(queue, kernel, [weir_read(from, old(:, j - 1:last + 1)), &
                                                   weir_readwrite(to, new(:, j:last))], [weir_scalar(0.1_real32)])
          else
            call weir_queue_submit(queue, kernel, [weir_read(to, new(:, j - 1:last + 1)), &
                                                   weir_readwrite(from, old(:, j:last))], [weir_scalar(0.1_real32)])
          end if
        end associate
      end do
      next = reference
      next(2:rows - 1, 2:columns - 1) = reference(2:rows - 1, 2:columns - 1) + 0.1_real32 * ( &
        reference(1:rows - 2, 2:columns - 1) + reference(3:rows, 2:columns - 1) + &
        reference(2:rows - 1, 1:columns - 2) + reference(2:rows - 1, 3:columns) - &
        4 * reference(2:rows - 1, 2:columns - 1))
      reference = next
    end do
    call weir_queue_synchronize(queue)
    call expect(maxval(abs(old - reference)) < 1e-5_real32, "the stencil equals that of whole arrays")
    call weir_queue_destroy(queue)
    swapped = from
    call weir_buffer_destroy(swapped)
    call weir_buffer_destroy(to)
  end subroutine

  !> One step of heat on the columns of operand 2; operand 1 has one more on either side.
  integer(c_int) function stencil(call) bind(C)
    use, intrinsic :: iso_c_binding, only: c_int
    type(weir_call), intent(in) :: call
    real(real32), pointer :: old(:, :), new(:, :)
    real(real32) :: rate
    integer :: m, n
    call weir_call_array(call, 1, old)
    call weir_call_array(call, 2, new)
    rate = real(weir_call_real(call, 1), real32)
    m = size(new, 1)
    n = size(new, 2)
    new(2:m - 1, :) = old(2:m - 1, 2:n + 1) + rate * ( &
      old(1:m - 2, 2:n + 1) + old(3:m, 2:n + 1) + old(2:m - 1, 1:n) + old(2:m - 1, 3:n + 2) - 4 * old(2:m - 1, 2:n + 1))
    stencil = WEIR_STATUS_OK
  end function
end program
