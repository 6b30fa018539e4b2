! Graphs: an iterative solver that swaps two buffers at each launch, parameters, and bad input.
program graphs_test
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use weir
  use checks
  implicit none
  integer, parameter :: N = 64, BLOCK = 16
  type(weir_runtime) :: runtime
  type(weir_place) :: place
  type(weir_kernel) :: relax, add, note, fail
  logical, volatile :: fails = .false.

  call weir_runtime_create(runtime, "host,sim:cores=2")
  call weir_place_create(weir_runtime_get_domain(runtime, 1), place, cores=2, oversubscribe=.true.)
  call weir_kernel_register(runtime, "relax", relax_rows, relax)
  call weir_kernel_register(runtime, "add", add_number, add)
  call weir_kernel_register(runtime, "note", note_scalars, note)
  call weir_kernel_register(runtime, "fail", fail_at_times, fail)
  call check_solver
  call check_stream
  call check_parameters
  call check_failures
  call check_refusals
  call weir_runtime_destroy(runtime)
  call finish("graphs")

contains

  subroutine make_queue(queue)
    type(weir_queue), intent(out) :: queue
    call weir_queue_create(runtime, queue, places=[place], models=.false.)
  end subroutine

  !> Fills a system whose solution Jacobi's method finds.
  subroutine make_system(matrix, b)
    real(real64), intent(out) :: matrix(N, N), b(N)
    integer :: i, j
    do concurrent(i=1:N, j=1:N)
      matrix(i, j) = merge(real(N, real64), 1._real64 / (i + j), i == j)
    end do
    b = [(mod(7 * i, 11) - 5._real64, i=1, N)]
  end subroutine

  !> The plain program: sweeps of Jacobi's method from zero.
  function solve(matrix, b, sweeps) result(x)
    real(real64), intent(in) :: matrix(N, N), b(N)
    integer, intent(in) :: sweeps
    real(real64) :: x(N), y(N)
    integer :: sweep, i, j
    x = 0
    do sweep = 1, sweeps
      y = b
      do j = 1, N
        do i = 1, N
          if (i /= j) y(i) = y(i) - matrix(i, j) * x(j)
        end do
      end do
      do i = 1, N
        y(i) = y(i) / matrix(i, i)
      end do
      x = y
    end do
  end function

  subroutine check_solver
    real(real64), target :: matrix(N, N), b(N), x(N), y(N)
    type(weir_buffer) :: of_matrix, of_b, of_x, of_y
    type(weir_queue) :: queue
    type(weir_graph) :: graph
    integer :: i
    call make_system(matrix, b)
    x = 0
    y = -1
    call make_queue(queue)
    call weir_buffer_wrap(runtime, matrix, of_matrix)
    call weir_buffer_wrap(runtime, b, of_b)
    call weir_buffer_wrap(runtime, x, of_x, "x")
    call weir_buffer_wrap(runtime, y, of_y, "y")
    call weir_graph_begin(queue, graph, name="sweep", record_only=.true.)
    do i = 1, N, BLOCK
      call weir_queue_submit(queue, relax, &
                             [weir_write(of_y, y(i:i + BLOCK - 1)), weir_read(of_matrix, matrix(i:i + BLOCK - 1, :)), &
                              weir_read(of_x), weir_read(of_b, b(i:i + BLOCK - 1))], [weir_scalar(i)])
    end do
    call weir_graph_end(graph)
    call weir_queue_synchronize(queue)
    call expect(all(y < 0), "recording alone runs nothing")
    do i = 1, 10
      call weir_graph_launch(graph)
      call weir_graph_launch(graph, [weir_binding(of_x, of_y), weir_binding(of_y, of_x)])
    end do
    call weir_graph_destroy(graph)  ! waits
    call expect(all(abs(x - solve(matrix, b, 20)) < 1e-13_real64), "the even sweeps")
    call expect(all(abs(y - solve(matrix, b, 19)) < 1e-13_real64), "the odd sweeps")
    call expect(all(abs(matmul(matrix, x) - b) < 1e-10_real64), "the solution")
    call weir_queue_destroy(queue)
    call weir_buffer_destroy(of_matrix)
    call weir_buffer_destroy(of_b)
    call weir_buffer_destroy(of_x)
    call weir_buffer_destroy(of_y)
  end subroutine

  !> In the memory of a simulated device.
  subroutine check_stream
    real(real64), target :: sums(8)
    type(weir_buffer) :: buffer
    type(weir_place) :: there
    type(weir_stream) :: stream
    type(weir_graph) :: graph
    type(weir_event) :: event
    sums = 1
    call weir_place_create(weir_runtime_get_domain(runtime, 2), there)
    call weir_stream_create(there, stream)
    call weir_buffer_wrap(runtime, sums, buffer)
    call weir_stream_upload(stream, weir_read(buffer))
    call weir_graph_begin(stream, graph)
    call weir_stream_compute(stream, add, [weir_readwrite(buffer)], [weir_scalar_parameter(weir_scalar(1._real64), 1)])
    call weir_stream_compute(stream, add, [weir_readwrite(buffer, sums(1:4))], &
                             [weir_scalar_parameter(weir_scalar(1._real64), 1)])
    call weir_graph_end(graph)
    call weir_graph_launch(graph, parameters=[weir_scalar(10._real64)], event=event)
    call weir_event_wait(runtime, event)
    call weir_stream_download(stream, weir_read(buffer))
    call weir_stream_synchronize(stream)
    call expect(all(abs(sums(1:4) - 23) < 1e-12_real64), "both calls of the recording and of the launch")
    call expect(all(abs(sums(5:8) - 12) < 1e-12_real64), "one call of each")
    call weir_graph_destroy(graph)
    call weir_stream_destroy(stream)
    call weir_place_destroy(there)
    call weir_buffer_destroy(buffer)
  end subroutine

  subroutine check_parameters
    integer(int64), target :: seen(4)
    type(weir_buffer) :: buffer
    type(weir_queue) :: queue
    type(weir_graph) :: graph
    call make_queue(queue)
    call weir_buffer_wrap(runtime, seen, buffer)
    call weir_graph_begin(queue, graph)
    call weir_queue_submit(queue, note, [weir_write(buffer)], &
                           [weir_scalar_parameter(weir_scalar(3), 2), weir_scalar(7), &
                            weir_scalar_parameter(weir_scalar(0.25), 1), weir_scalar_parameter(weir_scalar("N"), 3)])
    call weir_graph_end(graph)
    call weir_queue_synchronize(queue)
    call expect(all(seen == [3_int64, 7_int64, 25_int64, 78_int64]), "the values while they are recorded")
    seen = 0
    call weir_graph_launch(graph)
    call weir_queue_synchronize(queue)
    call expect(all(seen == [3_int64, 7_int64, 25_int64, 78_int64]), "the recorded values")
    call weir_graph_launch(graph, parameters=[weir_scalar(0.5), weir_scalar(-5000000000_int64), weir_scalar("T")])
    call weir_queue_synchronize(queue)
    call expect(all(seen == [-5000000000_int64, 7_int64, 50_int64, 84_int64]), "other values")
    call weir_graph_destroy(graph)
    call weir_queue_destroy(queue)
    call weir_buffer_destroy(buffer)
  end subroutine

  subroutine check_failures
    real(real64), target :: sums(8)
    type(weir_buffer) :: buffer
    type(weir_queue) :: queue
    type(weir_graph) :: graph
    type(weir_event) :: event
    integer :: status
    character(200) :: message
    sums = 0
    call make_queue(queue)
    call weir_buffer_wrap(runtime, sums, buffer)
    call weir_graph_begin(queue, graph, name="loop")
    call weir_queue_submit(queue, fail, [weir_readwrite(buffer)])
    call weir_queue_submit(queue, add, [weir_readwrite(buffer)], [weir_scalar(1._real64)])
    call weir_graph_end(graph)
    call weir_queue_synchronize(queue)
    fails = .true.
    call weir_graph_launch(graph, event=event)
    call weir_event_wait(runtime, event, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_KERNEL_ERROR .and. index(message, "call 1 of 2, 'fail': no cell 42") > 0, message)
    call weir_queue_synchronize(queue, stat=status)
    call expect(status == WEIR_STATUS_KERNEL_ERROR, "the queue reports it")
    fails = .false.
    call weir_graph_launch(graph)
    call weir_queue_synchronize(queue)
    call expect(all(abs(sums - 2) < 1e-12_real64), "the failed launch added nothing, the next one did")
    call weir_graph_destroy(graph)
    call weir_queue_destroy(queue)
    call weir_buffer_destroy(buffer)
  end subroutine

  subroutine check_refusals
    real(real64), target :: sums(8), few(4), free(8)
    type(weir_buffer) :: buffer, small, unused
    type(weir_queue) :: queue
    type(weir_graph) :: graph, second, none
    integer :: status
    character(200) :: message
    sums = 0
    call make_queue(queue)
    call weir_buffer_wrap(runtime, sums, buffer)
    call weir_buffer_wrap(runtime, few, small, "small")
    call weir_buffer_wrap(runtime, free, unused, "free")
    call weir_graph_begin(queue, graph)
    call weir_graph_end(graph, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "no kernel call") > 0, message)
    call weir_graph_destroy(graph)

    call weir_graph_begin(queue, graph, "loop", record_only=.true.)
    call weir_graph_begin(queue, second, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_BUSY, "a queue is recorded once at a time: " // message)
    call weir_queue_submit(queue, add, [weir_readwrite(buffer)], &
                           [weir_scalar_parameter(weir_scalar(1._real64), 0)], stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "scalar 1 is a parameter") > 0, message)
    call weir_queue_submit(queue, add, [weir_readwrite(buffer)], &
                           [weir_scalar_parameter(weir_scalar(1._real64), 1000)], stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "parameter") > 0, message)
    call weir_queue_submit(queue, add, [weir_readwrite(buffer)], [weir_scalar_parameter(weir_scalar(1._real64), 1)])
    call weir_graph_launch(graph, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "has not ended") > 0, message)
    call weir_graph_end(graph)

    call refuse_launch(graph, "buffer 'small' of 32 bytes", bindings=[weir_binding(buffer, small)])
    call refuse_launch(graph, "does not use", bindings=[weir_binding(unused, buffer)])
    call refuse_launch(graph, "another type", parameters=[weir_scalar(1)])
    call refuse_launch(none, "graph")
    call weir_graph_launch(graph, [weir_binding(buffer, unused)], [weir_scalar(1._real64)], stat=status)
    call expect(status == WEIR_STATUS_OK, "what is right is launched")
    call weir_queue_synchronize(queue)
    call expect(all(abs(sums) < 1e-12_real64), "nothing was launched on the recorded buffer")
    call weir_graph_destroy(graph)
    call weir_graph_destroy(none)
    call weir_queue_destroy(queue)
    call weir_buffer_destroy(buffer)
    call weir_buffer_destroy(small)
    call weir_buffer_destroy(unused)
  end subroutine

  subroutine refuse_launch(graph, why, bindings, parameters)
    type(weir_graph), intent(in) :: graph
    character(*), intent(in) :: why
    type(weir_binding), intent(in), optional :: bindings(:)
    type(weir_scalar_argument), intent(in), optional :: parameters(:)
    integer :: status
    character(200) :: message
    call weir_graph_launch(graph, bindings, parameters, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, why) > 0, why // ": " // message)
  end subroutine

  ! ---- Kernels -----------------------------------------------------------------------------------

  !> Rows of a sweep, the first of which is scalar 1: their new values, the matrix, all old values, b.
  integer(c_int) function relax_rows(call) bind(C)
    type(weir_call), intent(in) :: call
    real(real64), pointer :: new(:), rows(:, :), old(:), b(:)
    integer :: first, i, j
    call weir_call_array(call, 1, new)
    call weir_call_array(call, 2, rows)
    call weir_call_array(call, 3, old)
    call weir_call_array(call, 4, b)
    first = int(weir_call_integer(call, 1))
    new = b
    do j = 1, size(old)
      do i = 1, size(new)
        if (first + i - 1 /= j) new(i) = new(i) - rows(i, j) * old(j)
      end do
    end do
    do i = 1, size(new)
      new(i) = new(i) / rows(i, first + i - 1)
    end do
    relax_rows = WEIR_STATUS_OK
  end function

  integer(c_int) function add_number(call) bind(C)
    type(weir_call), intent(in) :: call
    real(real64), pointer :: x(:)
    call weir_call_array(call, 1, x)
    x = x + weir_call_real(call, 1)
    add_number = WEIR_STATUS_OK
  end function

  integer(c_int) function note_scalars(call) bind(C)
    type(weir_call), intent(in) :: call
    integer(int64), pointer :: seen(:)
    call weir_call_array(call, 1, seen)
    seen = [weir_call_integer(call, 1), weir_call_integer(call, 2), int(100 * weir_call_real(call, 3), int64), &
            weir_call_integer(call, 4)]
    note_scalars = WEIR_STATUS_OK
  end function

  integer(c_int) function fail_at_times(call) bind(C)
    type(weir_call), intent(in) :: call
    fail_at_times = WEIR_STATUS_OK
    if (fails) fail_at_times = weir_call_fail(call, "no cell 42")
  end function
end program
