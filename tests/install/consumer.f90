program consumer
  use, intrinsic :: iso_c_binding, only: c_int
  use weir
  implicit none
  type(weir_runtime) :: runtime
  type(weir_place) :: place
  type(weir_stream) :: stream
  type(weir_buffer) :: buffer
  type(weir_kernel) :: double
  integer, target :: vector(0:999)
  integer :: i

  vector = [(i, i=0, 999)]
  call weir_runtime_create(runtime, "host:cores=1")
  call weir_place_create(weir_runtime_get_domain(runtime, 1), place)
  call weir_stream_create(place, stream)
  call weir_buffer_wrap(runtime, vector, buffer)
  call weir_kernel_register(runtime, "double", double_all, double)
  call weir_stream_compute(stream, double, [weir_readwrite(buffer)])
  call weir_runtime_destroy(runtime)
  print "('vector[999] = ', i0)", vector(999)

contains

  integer(c_int) function double_all(call) bind(C)
    type(weir_call), intent(in) :: call
    integer, pointer :: x(:)
    call weir_call_array(call, 1, x)
    x = 2 * x
    double_all = WEIR_STATUS_OK
  end function
end program
