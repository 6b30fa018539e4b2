! weir for Fortran 2018: streams, buffers over arrays, kernels written in Fortran, task queues.
!
!   use weir
!   call weir_runtime_create(runtime, "host,sim:cores=2")
!
! Contracts are those of the C functions of the same names; what differs:
!
! - stat and errmsg are optional everywhere, as in ALLOCATE: stat becomes WEIR_STATUS_OK or what went
!   wrong, errmsg one line about it. Without stat a failure stops the program with that line.
! - Domains, operands, scalars and parameters count from 1. Times are seconds; without timeout a wait is for ever.
! - Operands are sections of the arrays that buffers were made of: weir_read(buffer, a(1:n, 3:4)). The
!   arrays are TARGETs, and are not touched by the program while actions use them.
! - Handles are values. Destroying an object makes its copies invalid, which weir then says.
module weir
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use weir_support
  implicit none
  private

  ! ---- Constants ---------------------------------------------------------------------------------

  integer, parameter, public :: &
    WEIR_STATUS_OK = 0, WEIR_STATUS_INVALID_ARGUMENT = 1, WEIR_STATUS_NOT_FOUND = 2, &
    WEIR_STATUS_UNSUPPORTED = 3, WEIR_STATUS_UNAVAILABLE = 4, WEIR_STATUS_OUT_OF_MEMORY = 5, &
    WEIR_STATUS_BUSY = 6, WEIR_STATUS_TIMEOUT = 7, WEIR_STATUS_CANCELLED = 8, &
    WEIR_STATUS_POISONED = 9, WEIR_STATUS_KERNEL_ERROR = 10, WEIR_STATUS_DEVICE_ERROR = 11, &
    WEIR_STATUS_NETWORK_ERROR = 12, WEIR_STATUS_INTERNAL = 13

  ! ---- Types -------------------------------------------------------------------------------------

  type, bind(C), public :: weir_runtime
    private
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, bind(C), public :: weir_domain
    private
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, bind(C), public :: weir_place
    private
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, bind(C), public :: weir_stream
    private
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, bind(C), public :: weir_queue
    private
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, bind(C), public :: weir_kernel
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> Calls that were recorded once and are launched many times.
  type, bind(C), public :: weir_graph
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> The completion of an action. The value before it was set is complete.
  type, bind(C), public :: weir_event
    private
    integer(c_int64_t) :: opaque(2) = 0
  end type

  type, bind(C) :: weir_region
    integer(c_size_t) :: offset = 0, extent(3) = 0, stride(2) = 0
  end type

  !> A section of a buffer and how a kernel uses it: what weir_read() and its like return.
  type, bind(C), public :: weir_operand
    private
    type(c_ptr) :: buffer = c_null_ptr
    type(weir_region) :: region
    integer(c_int) :: access = 0
  end type

  type, bind(C), public :: weir_buffer
    private
    type(c_ptr) :: handle = c_null_ptr
    type(weir_operand) :: whole  !< the whole array, in its shape
  end type

  !> A scalar argument: what weir_scalar() returns.
  type, bind(C), public :: weir_scalar_argument
    private
    integer(c_int) :: kind = 0
    integer(c_int64_t) :: bits = 0
  end type

  !> What takes the place of a recorded buffer in a launch: weir_binding(recorded, replacement).
  type, bind(C), public :: weir_binding
    private
    type(c_ptr) :: recorded = c_null_ptr, replacement = c_null_ptr
  end type

  type, bind(C) :: weir_view
    type(c_ptr) :: address
    integer(c_size_t) :: extent(3), stride(2)
    integer(c_int) :: access
  end type

  !> The arguments of one call of a kernel; valid during the call.
  type, bind(C), public :: weir_call
    private
    type(c_ptr) :: scalars
    integer(c_size_t) :: scalar_count
    type(c_ptr) :: operands
    integer(c_size_t) :: operand_count
    type(c_ptr) :: team, name, payload, queue
  end type

  !> A kernel: returns WEIR_STATUS_OK or what weir_call_fail() does.
  abstract interface
    integer(c_int) function weir_host_function(call) bind(C)
      import :: c_int, weir_call
      type(weir_call), intent(in) :: call
    end function
  end interface
  public :: weir_host_function

  integer(c_int), parameter :: READ_ = 1, WRITE_ = 2, READ_WRITE_ = 3, COMMUTE_ = 7
  integer(c_int), parameter :: I64 = 0, U64 = 1, F32 = 2, F64 = 3
  integer(c_int), parameter :: NO_PARAMETER = -1, MOST_PARAMETERS = 65536  ! more than weir has

  ! ---- What there is -----------------------------------------------------------------------------

  public :: weir_runtime_create, weir_runtime_destroy, weir_runtime_synchronize
  public :: weir_runtime_domain_count, weir_runtime_get_domain, weir_runtime_find_domain
  public :: weir_domain_name
  public :: weir_place_create, weir_place_destroy
  public :: weir_stream_create, weir_stream_destroy, weir_stream_synchronize, weir_stream_cancel
  public :: weir_stream_upload, weir_stream_download, weir_stream_transfer, weir_stream_compute
  public :: weir_stream_wait, weir_stream_barrier
  public :: weir_buffer_wrap, weir_buffer_destroy
  public :: weir_read, weir_write, weir_readwrite, weir_commute
  public :: weir_kernel_register, weir_kernel_find
  public :: weir_call_array, weir_call_integer, weir_call_real, weir_call_fail
  public :: weir_event_wait, weir_event_done
  public :: weir_queue_create, weir_queue_destroy, weir_queue_submit, weir_queue_acquire
  public :: weir_queue_flush, weir_queue_synchronize
  public :: weir_graph_begin, weir_graph_end, weir_graph_launch, weir_graph_destroy, weir_scalar_parameter
  public :: weir_trace_start, weir_trace_write
  public :: weir_scalar, weir_status_name

  !> A scalar argument: of an integer, a real, or a letter as BLAS takes them.
  interface weir_scalar
    module procedure scalar_int32, scalar_int64, scalar_real32, scalar_real64, scalar_letter
  end interface

  !> A buffer that takes the place of a recorded one in a launch.
  interface weir_binding
    module procedure binding_of
  end interface

  !> Begins to record the tasks of a queue with one place in host memory, or the computes of a stream,
  !> until weir_graph_end(). record_only: the calls do not run, and their events are complete.
  interface weir_graph_begin
    module procedure begin_queue, begin_stream
  end interface

  !> Operand index of a call as a pointer: rank 1 for what is contiguous, rank 2 for tiles.
  !> Null when there is no such operand, or it does not fit.
  interface weir_call_array
    module procedure array_real32_1, array_real32_2, array_real64_1, array_real64_2
    module procedure array_int32_1, array_int32_2, array_int64_1, array_int64_2
  end interface

  !> Waits for one event, or for all of an array.
  interface weir_event_wait
    module procedure wait_one, wait_all
  end interface

  ! ---- C -----------------------------------------------------------------------------------------

  interface
    type(c_ptr) function weir_status_name_c(status) &
      bind(C, name="weir_status_name")
      import
      integer(c_int), value :: status
    end function

    integer(c_int) function weir_fortran_runtime_create_c(domains, blas, runtime) &
      bind(C, name="weir_fortran_runtime_create")
      import
      character(kind=c_char), intent(in) :: domains(*), blas(*)
      type(c_ptr), intent(out) :: runtime
    end function

    subroutine weir_runtime_destroy_c(handle) bind(C, name="weir_runtime_destroy")
      import
      type(c_ptr), value :: handle
    end subroutine

    subroutine weir_place_destroy_c(handle) bind(C, name="weir_place_destroy")
      import
      type(c_ptr), value :: handle
    end subroutine

    subroutine weir_stream_destroy_c(handle) bind(C, name="weir_stream_destroy")
      import
      type(c_ptr), value :: handle
    end subroutine

    subroutine weir_queue_destroy_c(handle) bind(C, name="weir_queue_destroy")
      import
      type(c_ptr), value :: handle
    end subroutine

    subroutine weir_buffer_destroy_c(handle) bind(C, name="weir_buffer_destroy")
      import
      type(c_ptr), value :: handle
    end subroutine

    integer(c_int) function weir_runtime_synchronize_c(handle, timeout_ns) &
      bind(C, name="weir_runtime_synchronize")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_stream_synchronize_c(handle, timeout_ns) &
      bind(C, name="weir_stream_synchronize")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_queue_synchronize_c(handle, timeout_ns) &
      bind(C, name="weir_queue_synchronize")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_stream_cancel_c(handle) &
      bind(C, name="weir_stream_cancel")
      import
      type(c_ptr), value :: handle
    end function

    integer(c_size_t) function weir_runtime_domain_count_c(runtime) &
      bind(C, name="weir_runtime_domain_count")
      import
      type(c_ptr), value :: runtime
    end function

    type(c_ptr) function weir_runtime_get_domain_c(runtime, index) &
      bind(C, name="weir_runtime_get_domain")
      import
      type(c_ptr), value :: runtime
      integer(c_size_t), value :: index
    end function

    integer(c_int) function weir_runtime_find_domain_c(runtime, name, domain) &
      bind(C, name="weir_runtime_find_domain")
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(out) :: domain
    end function

    integer(c_int) function weir_fortran_domain_name_c(domain, text, capacity) &
      bind(C, name="weir_fortran_domain_name")
      import
      type(c_ptr), value :: domain
      character(kind=c_char), intent(out) :: text(*)
      integer(c_size_t), value :: capacity
    end function

    integer(c_int) function weir_fortran_place_create_c(domain, cores, oversubscribe, place) &
      bind(C, name="weir_fortran_place_create")
      import
      type(c_ptr), value :: domain
      integer(c_size_t), value :: cores
      logical(c_bool), value :: oversubscribe
      type(c_ptr), intent(out) :: place
    end function

    integer(c_int) function weir_fortran_stream_create_c(place, name, max_in_flight, stream) &
      bind(C, name="weir_fortran_stream_create")
      import
      type(c_ptr), value :: place
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: max_in_flight
      type(c_ptr), intent(out) :: stream
    end function

    integer(c_int) function weir_fortran_queue_create_c(runtime, policy, no_models, places, place_count, &
                                                        max_in_flight, queue) &
      bind(C, name="weir_fortran_queue_create")
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in) :: policy(*)
      logical(c_bool), value :: no_models
      type(c_ptr), intent(in) :: places(*)
      integer(c_size_t), value :: place_count
      integer(c_size_t), value :: max_in_flight
      type(c_ptr), intent(out) :: queue
    end function

    integer(c_int) function weir_fortran_buffer_wrap_c(runtime, array, name, buffer, whole) &
      bind(C, name="weir_fortran_buffer_wrap")
      import
      type(c_ptr), value :: runtime
      type(*), dimension(..), intent(in) :: array
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(out) :: buffer
      type(weir_operand), intent(inout) :: whole
    end function

    subroutine weir_fortran_operand_c(buffer, section, access, operand) bind(C, name="weir_fortran_operand")
      import
      type(c_ptr), value :: buffer
      type(*), dimension(..), intent(in), optional :: section
      integer(c_int), value :: access
      type(weir_operand), intent(out) :: operand
    end subroutine

    integer(c_int) function weir_kernel_find_c(runtime, name, kernel) &
      bind(C, name="weir_kernel_find")
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(out) :: kernel
    end function

    integer(c_int) function weir_fortran_kernel_register_c(runtime, name, code, parallel, kernel) &
      bind(C, name="weir_fortran_kernel_register")
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr), value :: code
      logical(c_bool), value :: parallel
      type(c_ptr), intent(out) :: kernel
    end function

    integer(c_int) function weir_fortran_call_fail_c(call, message) &
      bind(C, name="weir_fortran_call_fail")
      import
      type(weir_call), intent(in) :: call
      character(kind=c_char), intent(in) :: message(*)
    end function

    integer(c_int) function weir_fortran_compute_c(stream, kernel, operands, operand_count, scalars, &
      scalar_count, name, event) &
      bind(C, name="weir_fortran_compute")
      import
      type(c_ptr), value :: stream, kernel
      type(weir_operand), intent(in) :: operands(*)
      integer(c_size_t), value :: operand_count, scalar_count
      type(weir_scalar_argument), intent(in) :: scalars(*)
      character(kind=c_char), intent(in) :: name(*)
      type(weir_event), intent(out) :: event
    end function

    integer(c_int) function weir_fortran_submit_c(queue, kernel, operands, operand_count, scalars, &
      scalar_count, name, priority, event) &
      bind(C, name="weir_fortran_submit")
      import
      type(c_ptr), value :: queue, kernel
      type(weir_operand), intent(in) :: operands(*)
      integer(c_size_t), value :: operand_count, scalar_count
      type(weir_scalar_argument), intent(in) :: scalars(*)
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: priority
      type(weir_event), intent(out) :: event
    end function

    integer(c_int) function weir_fortran_move_c(stream, part, direction, event) &
      bind(C, name="weir_fortran_move")
      import
      type(c_ptr), value :: stream
      type(weir_operand), intent(in) :: part
      integer(c_int), value :: direction
      type(weir_event), intent(out) :: event
    end function

    integer(c_int) function weir_fortran_transfer_c(stream, source, source_domain, target, &
      target_domain, event) &
      bind(C, name="weir_fortran_transfer")
      import
      type(c_ptr), value :: stream, source_domain, target_domain
      type(weir_operand), intent(in) :: source, target
      type(weir_event), intent(out) :: event
    end function

    integer(c_int) function weir_fortran_sync_c(stream, events, event_count, parts, &
      part_count, scope, event) &
      bind(C, name="weir_fortran_sync")
      import
      type(c_ptr), value :: stream
      type(weir_event), intent(in) :: events(*)
      integer(c_size_t), value :: event_count, part_count
      type(weir_operand), intent(in) :: parts(*)
      integer(c_int), value :: scope
      type(weir_event), intent(out) :: event
    end function

    integer(c_int) function weir_fortran_acquire_c(queue, part, timeout_ns) &
      bind(C, name="weir_fortran_acquire")
      import
      type(c_ptr), value :: queue
      type(weir_operand), intent(in) :: part
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_flush_c(queue, part, event) &
      bind(C, name="weir_fortran_flush")
      import
      type(c_ptr), value :: queue
      type(weir_operand), intent(in) :: part
      type(weir_event), intent(out) :: event
    end function

    integer(c_int) function weir_fortran_graph_begin_c(queue, stream, name, record_only, graph) &
      bind(C, name="weir_fortran_graph_begin")
      import
      type(c_ptr), value :: queue, stream
      character(kind=c_char), intent(in) :: name(*)
      logical(c_bool), value :: record_only
      type(c_ptr), intent(out) :: graph
    end function

    integer(c_int) function weir_graph_end_c(graph) bind(C, name="weir_graph_end")
      import
      type(c_ptr), value :: graph
    end function

    integer(c_int) function weir_fortran_graph_launch_c(graph, bindings, binding_count, parameters, &
      parameter_count, event) &
      bind(C, name="weir_fortran_graph_launch")
      import
      type(c_ptr), value :: graph
      type(weir_binding), intent(in) :: bindings(*)
      integer(c_size_t), value :: binding_count, parameter_count
      type(weir_scalar_argument), intent(in) :: parameters(*)
      type(weir_event), intent(out) :: event
    end function

    subroutine weir_graph_destroy_c(graph) bind(C, name="weir_graph_destroy")
      import
      type(c_ptr), value :: graph
    end subroutine

    integer(c_int) function weir_event_wait_c(runtime, events, count, mode, timeout_ns, &
      index) &
      bind(C, name="weir_event_wait")
      import
      type(c_ptr), value :: runtime, index
      type(weir_event), intent(in) :: events(*)
      integer(c_size_t), value :: count
      integer(c_int), value :: mode
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_trace_start_c(runtime, max_bytes) &
      bind(C, name="weir_trace_start")
      import
      type(c_ptr), value :: runtime
      integer(c_size_t), value :: max_bytes
    end function

    integer(c_int) function weir_trace_write_c(runtime, path) &
      bind(C, name="weir_trace_write")
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in) :: path(*)
    end function
  end interface

contains

  ! ---- Errors ------------------------------------------------------------------------------------

  !> The name of a status, "invalid_argument".
  function weir_status_name(status) result(name)
    integer, intent(in) :: status
    character(:), allocatable :: name
    name = f_string(weir_status_name_c(int(status, c_int)))
  end function

  ! ---- Runtimes and domains ----------------------------------------------------------------------

  !> Opens domains, "host,sim:cores=2,gbps=6"; without any those of WEIR_DOMAINS, or the host.
  subroutine weir_runtime_create(runtime, domains, blas, stat, errmsg)
    type(weir_runtime), intent(out) :: runtime
    character(*), intent(in), optional :: domains, blas
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_runtime_create_c(c_string(domains), c_string(blas), runtime%handle), stat, errmsg)
  end subroutine

  !> Waits for all work and frees every object of the runtime.
  subroutine weir_runtime_destroy(runtime)
    type(weir_runtime), intent(inout) :: runtime
    call weir_runtime_destroy_c(runtime%handle)
    runtime%handle = c_null_ptr
  end subroutine

  !> Waits for all streams and queues; reports the first failure.
  subroutine weir_runtime_synchronize(runtime, timeout, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_runtime_synchronize_c(runtime%handle, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  integer function weir_runtime_domain_count(runtime)
    type(weir_runtime), intent(in) :: runtime
    weir_runtime_domain_count = int(weir_runtime_domain_count_c(runtime%handle))
  end function

  !> Domain index, counted from 1; a null handle, which every call refuses, beyond the last.
  type(weir_domain) function weir_runtime_get_domain(runtime, index) result(domain)
    type(weir_runtime), intent(in) :: runtime
    integer, intent(in) :: index
    domain%handle = weir_runtime_get_domain_c(runtime%handle, int(index - 1, c_size_t))
  end function

  !> Finds a domain by its name, "sim:0", or by its kind when it is the only one.
  subroutine weir_runtime_find_domain(runtime, name, domain, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    character(*), intent(in) :: name
    type(weir_domain), intent(out) :: domain
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_runtime_find_domain_c(runtime%handle, c_string(name), domain%handle), stat, errmsg)
  end subroutine

  subroutine weir_domain_name(domain, name, stat, errmsg)
    type(weir_domain), intent(in) :: domain
    character(*), intent(out) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_domain_name_c(domain%handle, name, len(name, kind=c_size_t)), stat, errmsg)
  end subroutine

  ! ---- Places and streams ------------------------------------------------------------------------

  !> Makes a place of so many free cores; without cores, of all of them.
  subroutine weir_place_create(domain, place, cores, oversubscribe, stat, errmsg)
    type(weir_domain), intent(in) :: domain
    type(weir_place), intent(out) :: place
    integer, intent(in), optional :: cores
    logical, intent(in), optional :: oversubscribe
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: count
    logical(c_bool) :: shares
    count = 0
    if (present(cores)) count = int(cores, c_size_t)
    shares = .false.
    if (present(oversubscribe)) shares = logical(oversubscribe, c_bool)
    call report(weir_fortran_place_create_c(domain%handle, count, shares, place%handle), stat, errmsg)
  end subroutine

  !> Destroys the streams of the place, then the place.
  subroutine weir_place_destroy(place)
    type(weir_place), intent(inout) :: place
    call weir_place_destroy_c(place%handle)
    place%handle = c_null_ptr
  end subroutine

  !> max_in_flight: actions from which on the program waits to enqueue; the usual number without.
  subroutine weir_stream_create(place, stream, name, stat, errmsg, max_in_flight)
    type(weir_place), intent(in) :: place
    type(weir_stream), intent(out) :: stream
    character(*), intent(in), optional :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer, intent(in), optional :: max_in_flight
    integer(c_size_t) :: most
    most = 0
    if (present(max_in_flight)) most = int(max_in_flight, c_size_t)
    call report(weir_fortran_stream_create_c(place%handle, c_string(name), most, stream%handle), stat, errmsg)
  end subroutine

  !> Waits for the actions, whatever their outcome, and frees the stream.
  subroutine weir_stream_destroy(stream)
    type(weir_stream), intent(inout) :: stream
    call weir_stream_destroy_c(stream%handle)
    stream%handle = c_null_ptr
  end subroutine

  !> Waits for everything enqueued so far; reports the first failure and forgets it.
  subroutine weir_stream_synchronize(stream, timeout, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_stream_synchronize_c(stream%handle, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  !> Cancels the actions that have not started.
  subroutine weir_stream_cancel(stream, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_stream_cancel_c(stream%handle), stat, errmsg)
  end subroutine

  ! ---- Buffers and operands ----------------------------------------------------------------------

  !> Makes a buffer of an array of any type and rank, where it is. The array is a TARGET without gaps
  !> and outlives the buffer.
  subroutine weir_buffer_wrap(runtime, array, buffer, name, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    type(*), dimension(..), intent(in), target :: array
    type(weir_buffer), intent(out) :: buffer
    character(*), intent(in), optional :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_buffer_wrap_c(runtime%handle, array, c_string(name), buffer%handle, buffer%whole), &
      stat, errmsg)
  end subroutine

  !> Waits for the actions that use the buffer, then frees its instances, but not the array.
  subroutine weir_buffer_destroy(buffer)
    type(weir_buffer), intent(inout) :: buffer
    call weir_buffer_destroy_c(buffer%handle)
    buffer%handle = c_null_ptr
  end subroutine

  type(weir_operand) function operand_of(buffer, access, section) result(operand)
    type(weir_buffer), intent(in) :: buffer
    integer(c_int), intent(in) :: access
    type(*), dimension(..), intent(in), target, optional :: section
    if (present(section) .or. .not. c_associated(buffer%handle)) then
      call weir_fortran_operand_c(buffer%handle, section, access, operand)
    else
      operand = buffer%whole
      operand%access = access
    end if
  end function

  !> An operand that a kernel reads: a section of the array of the buffer, or all of it. A kernel
  !> sees all of it with the rows and columns of the array, the planes of higher ranks as columns.
  !> A section with subscripts that are vectors is a copy, and refused.
  type(weir_operand) function weir_read(buffer, section) result(operand)
    type(weir_buffer), intent(in) :: buffer
    type(*), dimension(..), intent(in), target, optional :: section
    operand = operand_of(buffer, READ_, section)
  end function

  type(weir_operand) function weir_write(buffer, section) result(operand)
    type(weir_buffer), intent(in) :: buffer
    type(*), dimension(..), intent(in), target, optional :: section
    operand = operand_of(buffer, WRITE_, section)
  end function

  type(weir_operand) function weir_readwrite(buffer, section) result(operand)
    type(weir_buffer), intent(in) :: buffer
    type(*), dimension(..), intent(in), target, optional :: section
    operand = operand_of(buffer, READ_WRITE_, section)
  end function

  !> Of tasks of a queue: read and written, in any order with others that commute.
  type(weir_operand) function weir_commute(buffer, section) result(operand)
    type(weir_buffer), intent(in) :: buffer
    type(*), dimension(..), intent(in), target, optional :: section
    operand = operand_of(buffer, COMMUTE_, section)
  end function

  pure type(weir_scalar_argument) function scalar_int32(value) result(scalar)
    integer(int32), intent(in) :: value
    scalar = weir_scalar_argument(I64, int(value, c_int64_t))
  end function

  pure type(weir_scalar_argument) function scalar_int64(value) result(scalar)
    integer(int64), intent(in) :: value
    scalar = weir_scalar_argument(I64, value)
  end function

  pure type(weir_scalar_argument) function scalar_real32(value) result(scalar)
    real(real32), intent(in) :: value
    scalar = weir_scalar_argument(F32, transfer([value, 0._real32], 0_c_int64_t))
  end function

  pure type(weir_scalar_argument) function scalar_real64(value) result(scalar)
    real(real64), intent(in) :: value
    scalar = weir_scalar_argument(F64, transfer(value, 0_c_int64_t))
  end function

  pure type(weir_scalar_argument) function scalar_letter(value) result(scalar)
    character(1), intent(in) :: value
    scalar = weir_scalar_argument(I64, int(iachar(value), c_int64_t))
  end function

  ! ---- Kernels -----------------------------------------------------------------------------------

  !> Registers a function of Fortran. parallel: it uses the whole place, with OpenMP.
  subroutine weir_kernel_register(runtime, name, code, kernel, parallel, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    character(*), intent(in) :: name
    procedure(weir_host_function) :: code
    type(weir_kernel), intent(out) :: kernel
    logical, intent(in), optional :: parallel
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    logical(c_bool) :: whole
    whole = .false.
    if (present(parallel)) whole = logical(parallel, c_bool)
    call report(weir_fortran_kernel_register_c(runtime%handle, c_string(name), c_funloc(code), whole, &
                                               kernel%handle), stat, errmsg)
  end subroutine

  !> Finds a kernel: a built-in one, "blas.dgemm", or one that was registered.
  subroutine weir_kernel_find(runtime, name, kernel, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    character(*), intent(in) :: name
    type(weir_kernel), intent(out) :: kernel
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_kernel_find_c(runtime%handle, c_string(name), kernel%handle), stat, errmsg)
  end subroutine

  !> Fails the action: `status = weir_call_fail(call, "...")`, which the kernel returns.
  integer(c_int) function weir_call_fail(call, message)
    type(weir_call), intent(in) :: call
    character(*), intent(in) :: message
    weir_call_fail = weir_fortran_call_fail_c(call, c_string(message))
  end function

  !> Scalar index of a call, converted; 0 when there is none.
  integer(int64) function weir_call_integer(call, index)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    type(weir_scalar_argument), pointer :: scalars(:)
    weir_call_integer = 0
    if (index < 1 .or. index > call%scalar_count) return
    call c_f_pointer(call%scalars, scalars, [call%scalar_count])
    select case (scalars(index)%kind)
    case (F32, F64)
      weir_call_integer = int(weir_call_real(call, index), int64)
    case default
      weir_call_integer = scalars(index)%bits
    end select
  end function

  real(real64) function weir_call_real(call, index)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    type(weir_scalar_argument), pointer :: scalars(:)
    real(real32) :: parts(2)
    weir_call_real = 0
    if (index < 1 .or. index > call%scalar_count) return
    call c_f_pointer(call%scalars, scalars, [call%scalar_count])
    select case (scalars(index)%kind)
    case (F32)
      parts = transfer(scalars(index)%bits, parts)
      weir_call_real = real(parts(1), real64)
    case (F64)
      weir_call_real = transfer(scalars(index)%bits, weir_call_real)
    case default
      weir_call_real = real(scalars(index)%bits, real64)
    end select
  end function

  !> Operand index: rows and columns of `bytes` each, and the distance of columns in elements. No rows
  !> when there is no such operand, or when it has planes, or when its columns are no whole elements,
  !> or are not whole elements apart.
  subroutine find_view(call, index, bytes, address, rows, columns, leading)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    integer(c_size_t), intent(in) :: bytes
    type(c_ptr), intent(out) :: address
    integer(c_size_t), intent(out) :: rows, columns, leading
    type(weir_view), pointer :: views(:)
    address = c_null_ptr
    rows = 0
    columns = 0
    leading = 0
    if (index < 1 .or. index > call%operand_count) return
    call c_f_pointer(call%operands, views, [call%operand_count])
    associate (view => views(index))
      if (view%extent(3) > 1 .or. mod(view%extent(1), bytes) /= 0) return
      if (view%extent(2) > 1 .and. mod(view%stride(1), bytes) /= 0) return
      address = view%address
      rows = view%extent(1) / bytes
      columns = view%extent(2)
      leading = rows
      if (columns > 1) leading = view%stride(1) / bytes
    end associate
  end subroutine

  subroutine array_real32_1(call, index, array)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    real(real32), pointer, intent(out) :: array(:)
    type(c_ptr) :: address
    integer(c_size_t) :: rows, columns, leading
    call find_view(call, index, 4_c_size_t, address, rows, columns, leading)
    array => null()
    if (columns == 1 .or. leading == rows) call c_f_pointer(address, array, [rows * columns])
  end subroutine

  subroutine array_real32_2(call, index, array)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    real(real32), pointer, intent(out) :: array(:, :)
    type(c_ptr) :: address
    integer(c_size_t) :: rows, columns, leading
    call find_view(call, index, 4_c_size_t, address, rows, columns, leading)
    array => null()
    if (rows == 0) return
    call c_f_pointer(address, array, [leading, columns])
    array => array(1:rows, :)
  end subroutine

  subroutine array_real64_1(call, index, array)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    real(real64), pointer, intent(out) :: array(:)
    type(c_ptr) :: address
    integer(c_size_t) :: rows, columns, leading
    call find_view(call, index, 8_c_size_t, address, rows, columns, leading)
    array => null()
    if (columns == 1 .or. leading == rows) call c_f_pointer(address, array, [rows * columns])
  end subroutine

  subroutine array_real64_2(call, index, array)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    real(real64), pointer, intent(out) :: array(:, :)
    type(c_ptr) :: address
    integer(c_size_t) :: rows, columns, leading
    call find_view(call, index, 8_c_size_t, address, rows, columns, leading)
    array => null()
    if (rows == 0) return
    call c_f_pointer(address, array, [leading, columns])
    array => array(1:rows, :)
  end subroutine

  subroutine array_int32_1(call, index, array)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    integer(int32), pointer, intent(out) :: array(:)
    type(c_ptr) :: address
    integer(c_size_t) :: rows, columns, leading
    call find_view(call, index, 4_c_size_t, address, rows, columns, leading)
    array => null()
    if (columns == 1 .or. leading == rows) call c_f_pointer(address, array, [rows * columns])
  end subroutine

  subroutine array_int32_2(call, index, array)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    integer(int32), pointer, intent(out) :: array(:, :)
    type(c_ptr) :: address
    integer(c_size_t) :: rows, columns, leading
    call find_view(call, index, 4_c_size_t, address, rows, columns, leading)
    array => null()
    if (rows == 0) return
    call c_f_pointer(address, array, [leading, columns])
    array => array(1:rows, :)
  end subroutine

  subroutine array_int64_1(call, index, array)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    integer(int64), pointer, intent(out) :: array(:)
    type(c_ptr) :: address
    integer(c_size_t) :: rows, columns, leading
    call find_view(call, index, 8_c_size_t, address, rows, columns, leading)
    array => null()
    if (columns == 1 .or. leading == rows) call c_f_pointer(address, array, [rows * columns])
  end subroutine

  subroutine array_int64_2(call, index, array)
    type(weir_call), intent(in) :: call
    integer, intent(in) :: index
    integer(int64), pointer, intent(out) :: array(:, :)
    type(c_ptr) :: address
    integer(c_size_t) :: rows, columns, leading
    call find_view(call, index, 8_c_size_t, address, rows, columns, leading)
    array => null()
    if (rows == 0) return
    call c_f_pointer(address, array, [leading, columns])
    array => array(1:rows, :)
  end subroutine

  ! ---- Actions -----------------------------------------------------------------------------------

  !> Enqueues a call of a kernel and returns at once.
  subroutine weir_stream_compute(stream, kernel, operands, scalars, name, event, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    type(weir_kernel), intent(in) :: kernel
    type(weir_operand), intent(in) :: operands(:)
    type(weir_scalar_argument), intent(in), optional :: scalars(:)
    character(*), intent(in), optional :: name
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_scalar_argument), allocatable :: values(:)
    type(weir_event) :: made
    allocate (values(0))
    if (present(scalars)) values = scalars
    call report(weir_fortran_compute_c(stream%handle, kernel%handle, operands, size(operands, kind=c_size_t), values, &
                                       size(values, kind=c_size_t), c_string(name), made), stat, errmsg)
    if (present(event)) event = made
  end subroutine

  !> Enqueues a copy of a part from host memory to the stream's domain.
  subroutine weir_stream_upload(stream, part, event, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    type(weir_operand), intent(in) :: part
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_event) :: made
    call report(weir_fortran_move_c(stream%handle, part, 1_c_int, made), stat, errmsg)
    if (present(event)) event = made
  end subroutine

  !> Enqueues a copy of a part from the stream's domain to host memory.
  subroutine weir_stream_download(stream, part, event, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    type(weir_operand), intent(in) :: part
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_event) :: made
    call report(weir_fortran_move_c(stream%handle, part, -1_c_int, made), stat, errmsg)
    if (present(event)) event = made
  end subroutine

  !> Enqueues a copy between two memories; without a domain that end is host memory.
  subroutine weir_stream_transfer(stream, source, target, source_domain, target_domain, event, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    type(weir_operand), intent(in) :: source, target
    type(weir_domain), intent(in), optional :: source_domain, target_domain
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_event) :: made
    type(c_ptr) :: from, to
    from = c_null_ptr
    to = c_null_ptr
    if (present(source_domain)) from = source_domain%handle
    if (present(target_domain)) to = target_domain%handle
    call report(weir_fortran_transfer_c(stream%handle, source, from, target, to, made), stat, errmsg)
    if (present(event)) event = made
  end subroutine

  !> Enqueues a wait for events of other streams. It orders what touches the parts; without parts it
  !> is a barrier.
  subroutine weir_stream_wait(stream, events, parts, event, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    type(weir_event), intent(in) :: events(:)
    type(weir_operand), intent(in), optional :: parts(:)
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_operand), allocatable :: ordered(:)
    type(weir_event) :: made
    allocate (ordered(0))
    if (present(parts)) ordered = parts
    call report(weir_fortran_sync_c(stream%handle, events, size(events, kind=c_size_t), ordered, &
                                    size(ordered, kind=c_size_t), merge(1_c_int, 0_c_int, present(parts)), made), &
                stat, errmsg)
    if (present(event)) event = made
  end subroutine

  !> Enqueues a barrier: later actions wait for all earlier ones.
  subroutine weir_stream_barrier(stream, event, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_event) :: none(0)
    call weir_stream_wait(stream, none, event=event, stat=stat, errmsg=errmsg)
  end subroutine

  subroutine wait_one(runtime, event, timeout, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    type(weir_event), intent(in) :: event
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call wait_all(runtime, [event], timeout, stat, errmsg)
  end subroutine

  subroutine wait_all(runtime, events, timeout, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    type(weir_event), intent(in) :: events(:)
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_event_wait_c(runtime%handle, events, size(events, kind=c_size_t), 0_c_int, nanoseconds(timeout), &
                                  c_null_ptr), stat, errmsg)
  end subroutine

  !> Whether an action is over, however it ended.
  logical function weir_event_done(runtime, event)
    type(weir_runtime), intent(in) :: runtime
    type(weir_event), intent(in) :: event
    integer :: status
    call wait_one(runtime, event, 0._real64, status)
    weir_event_done = status /= WEIR_STATUS_TIMEOUT
  end function

  ! ---- Task queues -------------------------------------------------------------------------------

  !> Makes a task queue over places, without any over all free cores of all domains. models: whether
  !> it uses and keeps measured times.
  subroutine weir_queue_create(runtime, queue, policy, places, models, stat, errmsg, max_in_flight)
    type(weir_runtime), intent(in) :: runtime
    type(weir_queue), intent(out) :: queue
    character(*), intent(in), optional :: policy
    type(weir_place), intent(in), optional :: places(:)
    logical, intent(in), optional :: models
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer, intent(in), optional :: max_in_flight
    type(c_ptr), allocatable :: handles(:)
    logical(c_bool) :: no_models
    integer(c_size_t) :: most
    most = 0
    if (present(max_in_flight)) most = int(max_in_flight, c_size_t)
    no_models = .false.
    if (present(models)) no_models = .not. models
    allocate (handles(0))
    if (present(places)) handles = places%handle
    call report(weir_fortran_queue_create_c(runtime%handle, c_string(policy), no_models, handles, &
                                            size(handles, kind=c_size_t), most, queue%handle), stat, errmsg)
  end subroutine

  !> Synchronises the queue, whatever the outcome, and frees it.
  subroutine weir_queue_destroy(queue)
    type(weir_queue), intent(inout) :: queue
    call weir_queue_destroy_c(queue%handle)
    queue%handle = c_null_ptr
  end subroutine

  !> Submits a call of a kernel and returns at once: weir chooses the place and the copies.
  subroutine weir_queue_submit(queue, kernel, operands, scalars, name, priority, event, stat, errmsg)
    type(weir_queue), intent(in) :: queue
    type(weir_kernel), intent(in) :: kernel
    type(weir_operand), intent(in) :: operands(:)
    type(weir_scalar_argument), intent(in), optional :: scalars(:)
    character(*), intent(in), optional :: name
    integer, intent(in), optional :: priority
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_scalar_argument), allocatable :: values(:)
    type(weir_event) :: made
    integer(c_int) :: urgency
    urgency = 0
    if (present(priority)) urgency = int(priority, c_int)
    allocate (values(0))
    if (present(scalars)) values = scalars
    call report(weir_fortran_submit_c(queue%handle, kernel%handle, operands, size(operands, kind=c_size_t), values, &
                                      size(values, kind=c_size_t), c_string(name), urgency, made), stat, errmsg)
    if (present(event)) event = made
  end subroutine

  !> Waits until the program may use a part as its operand says: weir_read(buffer, section).
  subroutine weir_queue_acquire(queue, part, timeout, stat, errmsg)
    type(weir_queue), intent(in) :: queue
    type(weir_operand), intent(in) :: part
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_acquire_c(queue%handle, part, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  !> Begins to write a part back to host memory.
  subroutine weir_queue_flush(queue, part, event, stat, errmsg)
    type(weir_queue), intent(in) :: queue
    type(weir_operand), intent(in) :: part
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_event) :: made
    call report(weir_fortran_flush_c(queue%handle, part, made), stat, errmsg)
    if (present(event)) event = made
  end subroutine

  !> Waits for all tasks and their results; reports the first failure and forgets it.
  subroutine weir_queue_synchronize(queue, timeout, stat, errmsg)
    type(weir_queue), intent(in) :: queue
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_queue_synchronize_c(queue%handle, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  ! ---- Graphs ------------------------------------------------------------------------------------

  subroutine begin_queue(queue, graph, name, record_only, stat, errmsg)
    type(weir_queue), intent(in) :: queue
    type(weir_graph), intent(out) :: graph
    character(*), intent(in), optional :: name
    logical, intent(in), optional :: record_only
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_graph_begin_c(queue%handle, c_null_ptr, c_string(name), is_true(record_only), &
                                           graph%handle), stat, errmsg)
  end subroutine

  subroutine begin_stream(stream, graph, name, record_only, stat, errmsg)
    type(weir_stream), intent(in) :: stream
    type(weir_graph), intent(out) :: graph
    character(*), intent(in), optional :: name
    logical, intent(in), optional :: record_only
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_graph_begin_c(c_null_ptr, stream%handle, c_string(name), is_true(record_only), &
                                           graph%handle), stat, errmsg)
  end subroutine

  !> Ends the recording; fails if nothing was recorded.
  subroutine weir_graph_end(graph, stat, errmsg)
    type(weir_graph), intent(in) :: graph
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_graph_end_c(graph%handle), stat, errmsg)
  end subroutine

  !> Runs the recorded calls once more and returns at once. bindings: two recorded buffers may replace
  !> each other. parameters: one for each, of the recorded type; without them the recorded values.
  subroutine weir_graph_launch(graph, bindings, parameters, event, stat, errmsg)
    type(weir_graph), intent(in) :: graph
    type(weir_binding), intent(in), optional :: bindings(:)
    type(weir_scalar_argument), intent(in), optional :: parameters(:)
    type(weir_event), intent(out), optional :: event
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(weir_binding), allocatable :: replaced(:)
    type(weir_scalar_argument), allocatable :: values(:)
    type(weir_event) :: made
    allocate (replaced(0), values(0))
    if (present(bindings)) replaced = bindings
    if (present(parameters)) values = parameters
    call report(weir_fortran_graph_launch_c(graph%handle, replaced, size(replaced, kind=c_size_t), values, &
                                            size(values, kind=c_size_t), made), stat, errmsg)
    if (present(event)) event = made
  end subroutine

  !> Ends the recording if it has not ended, waits for all launches, and frees the graph.
  subroutine weir_graph_destroy(graph)
    type(weir_graph), intent(inout) :: graph
    call weir_graph_destroy_c(graph%handle)
    graph%handle = c_null_ptr
  end subroutine

  pure type(weir_binding) function binding_of(recorded, replacement) result(binding)
    type(weir_buffer), intent(in) :: recorded, replacement
    binding%recorded = recorded%handle
    binding%replacement = replacement%handle
  end function

  !> Marks a scalar of a call that is being recorded as parameter `index` of the graph, counted from 1:
  !> it has its value now, and that of the parameter in launches that give parameters. Only for calls
  !> that are being recorded: elsewhere the kernel gets a scalar of an unknown type.
  pure type(weir_scalar_argument) function weir_scalar_parameter(scalar, index) result(parameter)
    type(weir_scalar_argument), intent(in) :: scalar
    integer, intent(in) :: index
    parameter = scalar
    parameter%kind = NO_PARAMETER
    if (index >= 1 .and. index < MOST_PARAMETERS) parameter%kind = scalar%kind + 256 * int(index, c_int)
  end function

  ! ---- Traces ------------------------------------------------------------------------------------

  !> Begins to record actions.
  subroutine weir_trace_start(runtime, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_trace_start_c(runtime%handle, 0_c_size_t), stat, errmsg)
  end subroutine

  !> Writes the recording: Perfetto's format to *.pftrace, else Chrome's JSON.
  subroutine weir_trace_write(runtime, path, stat, errmsg)
    type(weir_runtime), intent(in) :: runtime
    character(*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_trace_write_c(runtime%handle, c_string(path)), stat, errmsg)
  end subroutine
end module
