! Arrays of every rank and kind, sections, events, transfers, errors.
!
!   interface             checks
!   interface stop        fails without stat: the program stops with the message
program interface_test
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use weir
  use checks
  implicit none
  type(weir_runtime) :: runtime
  type(weir_kernel) :: add, fail, hold, shape_of, twice
  character(32) :: what
  integer, volatile :: released = 0

  call get_command_argument(1, what)
  if (what == "stop") call weir_runtime_create(runtime, "sim:speed=3")
  call weir_runtime_create(runtime, "host:cores=1,sim:cores=1")
  call weir_kernel_register(runtime, "add", add_to_all, add)
  call weir_kernel_register(runtime, "fail", fail_always, fail)
  call weir_kernel_register(runtime, "hold", hold_back, hold)
  call weir_kernel_register(runtime, "shape", write_shape, shape_of)
  call weir_kernel_register(runtime, "twice", double_tile, twice)
  call check_ranks
  call check_whole_arrays
  call check_sections
  call check_scalars
  call check_strides
  call check_events
  call check_failures
  call check_refusals
  call weir_runtime_destroy(runtime)
  call finish("interface")

contains

  subroutine open_stream(domain_name, place, stream)
    character(*), intent(in) :: domain_name
    type(weir_place), intent(out) :: place
    type(weir_stream), intent(out) :: stream
    type(weir_domain) :: domain
    character(16) :: name
    call weir_runtime_find_domain(runtime, domain_name, domain)
    call weir_domain_name(domain, name)
    call expect(index(name, domain_name) == 1, "the name of the domain")
    call weir_place_create(domain, place, cores=1)
    call weir_stream_create(place, stream, "mine")
  end subroutine

  subroutine check_ranks
    real(real64), target :: one(7), scalar
    real(real64), target :: two(3, 5)
    real(real64), allocatable, target :: three(:, :, :), four(:, :, :, :)
    real(real64), pointer :: pointed(:)
    allocate (three(2, 3, 4), four(2, 3, 2, 2), pointed(9))
    scalar = 1
    one = 1
    two = 1
    three = 1
    four = 1
    pointed = 1
    call add_on_card(scalar)
    call add_on_card(one)
    call add_on_card(two)
    call add_on_card(three)
    call add_on_card(four)
    call add_on_card(pointed)
    call expect(abs(scalar - 3.5_real64) < 1e-12_real64, "a scalar")
    call expect(all(abs(one - 3.5_real64) < 1e-12_real64), "rank 1")
    call expect(all(abs(two - 3.5_real64) < 1e-12_real64), "rank 2")
    call expect(all(abs(three - 3.5_real64) < 1e-12_real64), "rank 3")
    call expect(all(abs(four - 3.5_real64) < 1e-12_real64), "rank 4")
    call expect(all(abs(pointed - 3.5_real64) < 1e-12_real64), "a pointer")
    deallocate (pointed)
  end subroutine

  !> A kernel finds the rows and columns of an array that is named without a section.
  subroutine check_whole_arrays
    type(weir_place) :: place
    type(weir_stream) :: stream
    type(weir_buffer) :: flat, deep
    real(real64), target :: two(3, 5), three(2, 3, 4)
    two = 0
    three = 0
    call open_stream("sim", place, stream)
    call weir_buffer_wrap(runtime, two, flat)
    call weir_buffer_wrap(runtime, three, deep)
    call weir_stream_compute(stream, shape_of, [weir_write(flat)])
    call weir_stream_compute(stream, shape_of, [weir_write(deep)])
    call weir_stream_download(stream, weir_read(flat))
    call weir_stream_download(stream, weir_read(deep))
    call weir_stream_synchronize(stream)
    call expect(nint(two(1, 1)) == 3 .and. nint(two(2, 1)) == 5 .and. nint(two(3, 1)) == 15, "the shape of rank 2")
    call expect(nint(three(1, 1, 1)) == 2 .and. nint(three(2, 1, 1)) == 12 .and. nint(three(1, 2, 1)) == 24, &
      "the shape of rank 3: planes are columns")
    call weir_stream_destroy(stream)
    call weir_buffer_destroy(flat)
    call weir_buffer_destroy(deep)
    call weir_place_destroy(place)
  end subroutine

  !> Writes its operand's rows, columns and elements to the operand.
  integer(c_int) function write_shape(call) bind(C)
    type(weir_call), intent(in) :: call
    real(real64), pointer :: line(:), tile(:, :)
    call weir_call_array(call, 1, line)
    call weir_call_array(call, 1, tile)
    if (.not. associated(line) .or. .not. associated(tile)) then
      write_shape = weir_call_fail(call, "no array")
      return
    end if
    line = 0
    line(1:3) = [real(size(tile, 1), real64), real(size(tile, 2), real64), real(size(line), real64)]
    write_shape = WEIR_STATUS_OK
  end function

  subroutine add_on_card(array)
    type(*), dimension(..), intent(in), target :: array
    type(weir_place) :: place
    type(weir_stream) :: stream
    type(weir_buffer) :: buffer
    call open_stream("sim", place, stream)
    call weir_buffer_wrap(runtime, array, buffer)
    call weir_stream_upload(stream, weir_read(buffer))
    call weir_stream_compute(stream, add, [weir_readwrite(buffer)], [weir_scalar(2.5_real64)])
    call weir_stream_download(stream, weir_read(buffer))
    call weir_stream_synchronize(stream)
    call weir_stream_destroy(stream)
    call weir_buffer_destroy(buffer)
    call weir_place_destroy(place)
  end subroutine

  subroutine check_sections
    real(real64), target :: a(6, 8)
    real(real64) :: expected(6, 8)
    real(real32), target :: b(4, 4, 4)
    type(weir_place) :: place
    type(weir_stream) :: stream
    type(weir_buffer) :: buffer, cube
    a = 1
    b = 1
    expected = 1
    call open_stream("sim", place, stream)
    call weir_buffer_wrap(runtime, a, buffer, "a")
    call weir_buffer_wrap(runtime, b, cube, "b")
    call round_trip(stream, buffer, a(2:4, 3:5))
    call round_trip(stream, buffer, a(:, 8))
    call round_trip(stream, buffer, a(1, 1:7:2))
    call round_trip(stream, buffer, a(6:6, 7:7))
    expected(2:4, 3:5) = 2
    expected(:, 8) = 2
    expected(1, 1:7:2) = 2
    expected(6, 7) = 2
    call expect(all(abs(a - expected) < 1e-12_real64), "only the sections changed")
    call weir_stream_upload(stream, weir_read(cube, b(2:3, 2:3, 1:4:3)))
    call weir_stream_synchronize(stream)
    b = 5
    call weir_stream_download(stream, weir_read(cube, b(2:3, 2:3, 1:4:3)))
    call weir_stream_synchronize(stream)
    call expect(abs(sum(b) - (8 + 56 * 5)) < 1e-6, "a section of rank 3 came back")
    call weir_place_destroy(place)
    call weir_buffer_destroy(buffer)
    call weir_buffer_destroy(cube)
  end subroutine

  subroutine round_trip(stream, buffer, section)
    type(weir_stream), intent(in) :: stream
    type(weir_buffer), intent(in) :: buffer
    type(*), dimension(..), intent(in), target :: section
    call weir_stream_upload(stream, weir_read(buffer, section))
    call weir_stream_compute(stream, twice, [weir_readwrite(buffer, section)])
    call weir_stream_download(stream, weir_read(buffer, section))
    call weir_stream_synchronize(stream)
  end subroutine

  subroutine check_scalars
    integer(int64), target :: counts(4)
    integer(int32), target :: small(2)
    type(weir_place) :: place
    type(weir_stream) :: stream
    type(weir_buffer) :: buffer, other
    type(weir_kernel) :: kernel
    counts = 0
    small = 0
    call open_stream("host", place, stream)
    call weir_buffer_wrap(runtime, counts, buffer)
    call weir_buffer_wrap(runtime, small, other)
    call weir_kernel_register(runtime, "store", store_scalars, kernel)
    call weir_stream_compute(stream, kernel, [weir_write(buffer), weir_write(other)], &
                             [weir_scalar(-3), weir_scalar(5000000000_int64), weir_scalar(2.75), weir_scalar("N")], &
                             name="store them")
    call weir_stream_barrier(stream)
    call weir_stream_synchronize(stream)
    call expect(all(counts == [-3_int64, 5000000000_int64, 275_int64, 78_int64]), "scalars arrive")
    call expect(all(small == [4, 0]), "there is no fifth scalar, and no third operand")
    call weir_place_destroy(place)
    call weir_buffer_destroy(buffer)
    call weir_buffer_destroy(other)
  end subroutine

  !> Columns of two small numbers are one large number each, and apart by one and a half.
  subroutine check_strides
    real(real32), target :: x(3, 4)
    integer(int32), target :: fits(1)
    type(weir_place) :: place
    type(weir_stream) :: stream
    type(weir_buffer) :: buffer, other
    type(weir_kernel) :: kernel
    x = 1
    fits = 7
    call open_stream("host", place, stream)
    call weir_buffer_wrap(runtime, x, buffer)
    call weir_buffer_wrap(runtime, fits, other)
    call weir_kernel_register(runtime, "fits", tell_fit, kernel)
    call weir_stream_compute(stream, kernel, [weir_read(buffer, x(1:2, :)), weir_write(other)])
    call weir_stream_synchronize(stream)
    call expect(fits(1) == 0, "columns apart by a part of an element do not fit")
    call weir_place_destroy(place)
    call weir_buffer_destroy(buffer)
    call weir_buffer_destroy(other)
  end subroutine

  subroutine check_events
    real(real64), target :: x(10), y(10)
    type(weir_place) :: place(2)
    type(weir_stream) :: stream(2)
    type(weir_buffer) :: buffer, other
    type(weir_event) :: held, copied, stored
    type(weir_domain) :: card
    integer :: status
    x = 1
    y = 0
    released = 0
    call open_stream("host", place(1), stream(1))
    call open_stream("sim", place(2), stream(2))
    call weir_buffer_wrap(runtime, x, buffer)
    call weir_buffer_wrap(runtime, y, other)
    call weir_stream_compute(stream(1), hold, [weir_readwrite(buffer)], event=held)
    call weir_stream_wait(stream(2), [held], [weir_write(other)])
    card = weir_runtime_get_domain(runtime, 2)
    call weir_stream_transfer(stream(2), weir_read(buffer), weir_write(other), target_domain=card, event=copied)
    call weir_stream_download(stream(2), weir_read(other), event=stored)
    call weir_event_wait(runtime, held, timeout=0.01_real64, stat=status)
    call expect(status == WEIR_STATUS_TIMEOUT, "a wait has an end")
    call expect(.not. weir_event_done(runtime, stored), "what waits is not done")
    released = 1
    call weir_event_wait(runtime, [held, copied, stored])
    call expect(weir_event_done(runtime, stored), "what was waited for is done")
    call expect(all(abs(y - 7) < 1e-12_real64), "the copy came after the kernel")
    call weir_runtime_synchronize(runtime)
    call weir_place_destroy(place(1))
    call weir_place_destroy(place(2))
    call weir_buffer_destroy(buffer)
    call weir_buffer_destroy(other)
  end subroutine

  subroutine check_failures
    real(real64), target :: x(4)
    type(weir_place) :: place
    type(weir_stream) :: stream
    type(weir_buffer) :: buffer
    type(weir_event) :: poisoned
    character(200) :: message
    integer :: status
    x = 1
    call open_stream("host", place, stream)
    call weir_buffer_wrap(runtime, x, buffer)
    call weir_stream_compute(stream, fail, [weir_write(buffer)], name="first")
    call weir_stream_compute(stream, add, [weir_readwrite(buffer)], [weir_scalar(1)], event=poisoned)
    call weir_event_wait(runtime, poisoned, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_POISONED .and. index(message, "first") > 0, "poison names the first: " // message)
    call weir_stream_synchronize(stream, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_KERNEL_ERROR, "the kernel failed")
    call expect(index(message, "no cell 42%") > 0, "its message: " // message)
    call weir_stream_compute(stream, add, [weir_readwrite(buffer)], [weir_scalar(1)])
    call weir_stream_synchronize(stream)
    call expect(all(abs(x - 2) < 1e-12_real64), "the stream is as good as new")
    call weir_place_destroy(place)
    call weir_buffer_destroy(buffer)
  end subroutine

  subroutine check_refusals
    real(real64), target :: x(4, 4, 4, 4), elsewhere(4)
    real(real64), allocatable, target :: nothing(:)
    type(weir_place) :: place
    type(weir_stream) :: stream
    type(weir_buffer) :: buffer, other
    type(weir_kernel) :: kernel
    type(weir_runtime) :: second
    type(weir_domain) :: domain
    integer :: status
    character(160) :: message
    x = 0
    elsewhere = 0
    call open_stream("sim", place, stream)
    call weir_buffer_wrap(runtime, x, buffer, "x")

    call refuse_operand(stream, weir_read(buffer, elsewhere), "not a section of its buffer")
    call refuse_operand(stream, weir_read(buffer, x(4:1:-1, 1, 1, 1)), "backwards")
    call refuse_operand(stream, weir_read(buffer, x(3:2, 1, 1, 1)), "empty")
    call refuse_operand(stream, weir_read(buffer, x(::2, ::2, ::2, 1)), "more gaps")
    call weir_stream_synchronize(stream, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_OK, "nothing was enqueued")

    call weir_buffer_wrap(runtime, x(1:3, :, 1, 1), other, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "gaps") > 0, "a buffer without gaps")
    allocate (nothing(0))
    call weir_buffer_wrap(runtime, nothing, other, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "empty") > 0, "a buffer of something")
    call weir_buffer_wrap(runtime, x(:, :, :, 1), other, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "overlap") > 0, "buffers do not overlap: " // message)
    call weir_kernel_find(runtime, "blas.dgem", kernel, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_NOT_FOUND .and. index(message, "blas.dgemm") > 0, "a kernel that is not there")
    call weir_kernel_register(runtime, "add", add_to_all, kernel, stat=status)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT, "names are taken once")
    call weir_runtime_create(second, "sim:speed=3", stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "speed") > 0, "a wrong domain")
    call weir_runtime_find_domain(runtime, "nowhere", domain, stat=status)
    call expect(status == WEIR_STATUS_NOT_FOUND, "a domain that is not there")
    call weir_place_create(weir_runtime_get_domain(runtime, 3), place, stat=status)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT, "beyond the last domain")
    call weir_stream_destroy(stream)
    call weir_stream_barrier(stream, stat=status)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT, "a destroyed stream")
    call expect(weir_status_name(WEIR_STATUS_POISONED) == "poisoned", "names of statuses")
    call weir_buffer_destroy(buffer)
  end subroutine

  subroutine refuse_operand(stream, operand, why)
    type(weir_stream), intent(in) :: stream
    type(weir_operand), intent(in) :: operand
    character(*), intent(in) :: why
    integer :: status
    character(160) :: message
    call weir_stream_upload(stream, operand, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, why) > 0, why // ": " // trim(message))
    call weir_stream_compute(stream, add, [operand], [weir_scalar(1)], stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "operand 1") > 0, why)
  end subroutine

  ! ---- Kernels -----------------------------------------------------------------------------------

  integer(c_int) function add_to_all(call) bind(C)
    type(weir_call), intent(in) :: call
    real(real64), pointer :: line(:), tile(:, :)
    call weir_call_array(call, 1, line)
    call weir_call_array(call, 1, tile)
    if (associated(line)) then
      line = line + weir_call_real(call, 1)
    else if (associated(tile)) then
      tile = tile + weir_call_real(call, 1)
    end if
    add_to_all = WEIR_STATUS_OK
  end function

  integer(c_int) function double_tile(call) bind(C)
    type(weir_call), intent(in) :: call
    real(real64), pointer :: tile(:, :)
    call weir_call_array(call, 1, tile)
    tile = 2 * tile
    double_tile = WEIR_STATUS_OK
  end function

  integer(c_int) function tell_fit(call) bind(C)
    type(weir_call), intent(in) :: call
    real(real64), pointer :: tile(:, :)
    integer(int32), pointer :: fits(:)
    call weir_call_array(call, 1, tile)
    call weir_call_array(call, 2, fits)
    fits = merge(1, 0, associated(tile))
    tell_fit = WEIR_STATUS_OK
  end function

  integer(c_int) function fail_always(call) bind(C)
    type(weir_call), intent(in) :: call
    fail_always = weir_call_fail(call, "no cell 42%")
  end function

  integer(c_int) function hold_back(call) bind(C)
    type(weir_call), intent(in) :: call
    real(real64), pointer :: x(:)
    do while (released == 0)
    end do
    call weir_call_array(call, 1, x)
    x = 7
    hold_back = WEIR_STATUS_OK
  end function

  integer(c_int) function store_scalars(call) bind(C)
    type(weir_call), intent(in) :: call
    integer(int64), pointer :: counts(:)
    integer(int32), pointer :: small(:)
    real(real32), pointer :: missing(:, :)
    call weir_call_array(call, 1, counts)
    call weir_call_array(call, 2, small)
    call weir_call_array(call, 3, missing)
    counts(1) = weir_call_integer(call, 1)
    counts(2) = weir_call_integer(call, 2)
    counts(3) = int(100 * weir_call_real(call, 3), int64)
    counts(4) = weir_call_integer(call, 4)
    small = 9
    if (.not. associated(missing)) small = [4, int(weir_call_integer(call, 5))]
    store_scalars = WEIR_STATUS_OK
  end function
end program
