! Ranks for Fortran 2018: processes of one program with messages, windows, collective operations and halos.
!
!   use weir_ranks
!   call weir_fabric_open(fabric)
!
! Contracts are those of the C functions of the same names; what differs:
!
! - stat, errmsg and timeout are those of the module weir.
! - Ranks have the numbers 0 to weir_fabric_ranks() - 1, as in MPI.
! - Elements of windows, cells and blocks of grids are counted from 1. Messages of weir count cells and
!   blocks from 0.
! - Data are scalars and arrays of any type and rank, without gaps. Those that weir uses after a call has returned
!   are TARGETs: the memory of windows, the data of puts and gets, the arrays of halos.
! - Collective operations check the sizes of arrays. Reductions and scans are for integers and reals of 32 and
!   64 bits, and take the type from the array. Without root all ranks have the result.
! - Handles are values. Destroying an object makes its copies invalid, which weir then says.
module weir_ranks
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use weir_support
  implicit none
  private

  ! ---- Constants ---------------------------------------------------------------------------------

  integer, parameter, public :: &
    WEIR_FABRIC_OP_SUM = 0, WEIR_FABRIC_OP_MIN = 1, WEIR_FABRIC_OP_MAX = 2, WEIR_FABRIC_OP_PRODUCT = 3, &
    WEIR_FABRIC_OP_AND = 4, WEIR_FABRIC_OP_OR = 5, WEIR_FABRIC_OP_XOR = 6, WEIR_NO_COLOR = -1

  ! ---- Types -------------------------------------------------------------------------------------

  !> A handle: this rank's membership in the fabric.
  type, bind(C), public :: weir_fabric
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> A handle: a group of ranks, which have the numbers 0, 1, ... in it.
  type, bind(C), public :: weir_communicator
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> A handle: memory of each rank that all ranks may reach, as elements of one size.
  type, bind(C), public :: weir_window
    private
    type(c_ptr) :: handle = c_null_ptr
    integer(c_size_t) :: element_bytes = 0
  end type

  !> A handle: cells in blocks over the ranks.
  type, bind(C), public :: weir_grid
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> A handle: a plan for the exchange of halos.
  type, bind(C), public :: weir_halo
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> Cells of one rank: those from first(d) to last(d) in each dimension d. In 2 dimensions the third has one.
  type, bind(C), public :: weir_grid_block
    integer(c_int64_t) :: first(3) = 1, last(3) = 1
    integer(c_int) :: rank = 0
  end type

  !> An array with the cells of a block and its halo: what weir_grid_array(array) returns.
  type, bind(C), public :: weir_grid_array
    private
    type(c_ptr) :: address = c_null_ptr
    integer(c_size_t) :: element_bytes = 0, extent(3) = 0, stride(2) = 0
  end type

  !> Receives a message of rank `from`, which is valid until the handler returns: use c_f_pointer(). It runs on
  !> the thread that makes progress, must not wait, and is a procedure of a module.
  abstract interface
    subroutine weir_fabric_handler(from, message, bytes, payload) bind(C)
      import :: c_int, c_ptr, c_size_t
      integer(c_int), value :: from
      type(c_ptr), value :: message
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: payload
    end subroutine
  end interface
  public :: weir_fabric_handler

  integer(c_int), parameter :: NUMBER_INT32 = 2, NUMBER_INT64 = 3, NUMBER_FLOAT = 8, NUMBER_DOUBLE = 9
  integer(c_int), parameter :: ALL_RANKS = -1

  ! ---- What there is -----------------------------------------------------------------------------

  public :: weir_fabric_open, weir_fabric_close, weir_fabric_launch
  public :: weir_fabric_rank, weir_fabric_ranks, weir_fabric_is_alive, weir_fabric_link
  public :: weir_fabric_barrier, weir_fabric_reduce, weir_fabric_broadcast
  public :: weir_fabric_listen, weir_fabric_send, weir_fabric_progress
  public :: weir_window_create, weir_window_allocate, weir_window_destroy
  public :: weir_window_put, weir_window_get, weir_window_fetch_add, weir_window_compare_swap, weir_window_flush
  public :: weir_fabric_communicator, weir_communicator_split, weir_communicator_split_by_node
  public :: weir_communicator_shrink, weir_communicator_revoke, weir_communicator_destroy
  public :: weir_communicator_rank, weir_communicator_size, weir_communicator_fabric_rank
  public :: weir_communicator_barrier, weir_communicator_broadcast, weir_communicator_gather
  public :: weir_communicator_scatter, weir_communicator_all_to_all
  public :: weir_communicator_reduce, weir_communicator_scan
  public :: weir_grid_create, weir_grid_destroy, weir_grid_get_blocks
  public :: weir_halo_create, weir_halo_start, weir_halo_finish, weir_halo_destroy

  !> Combines values of all ranks, in place on every rank.
  interface weir_fabric_reduce
    module procedure fabric_reduce_int64, fabric_reduce_real64
  end interface

  !> Makes a window of new memory, zeroed, of the kind that other ranks access fastest, and points `memory` to
  !> the `count` elements of this rank, which end with the window; null without any. Counts may differ.
  interface weir_window_allocate
    module procedure allocate_int32, allocate_int64, allocate_real32, allocate_real64
  end interface

  !> Combines values of all ranks in place, on rank `root` or on all.
  interface weir_communicator_reduce
    module procedure reduce_int32, reduce_int64, reduce_real32, reduce_real64
  end interface

  !> Combines the values of the ranks up to this one, in place; exclusive: of the ranks below this one, and
  !> rank 0 keeps its values.
  interface weir_communicator_scan
    module procedure scan_int32, scan_int64, scan_real32, scan_real64
  end interface

  !> Describes an array of rank 2 or 3, a TARGET that contains the cells of a block with its halo at both ends of
  !> each dimension. Only its second and third dimension may have gaps.
  interface weir_grid_array
    module procedure array_of
  end interface

  ! ---- C -----------------------------------------------------------------------------------------

  interface
    integer(c_int) function weir_fortran_fabric_open_c(transport, progress, lost_after_ns, fabric) &
      bind(C, name="weir_fortran_fabric_open")
      import
      character(kind=c_char), intent(in) :: transport(*), progress(*)
      integer(c_int64_t), value :: lost_after_ns
      type(c_ptr), intent(inout) :: fabric
    end function

    subroutine weir_fabric_close_c(fabric) bind(C, name="weir_fabric_close")
      import
      type(c_ptr), value :: fabric
    end subroutine

    integer(c_int) function weir_fabric_launch_c(options, ranks, arguments, exit_status) &
      bind(C, name="weir_fabric_launch")
      import
      type(c_ptr), value :: options
      integer(c_int), value :: ranks
      type(c_ptr), intent(in) :: arguments(*)
      integer(c_int), intent(inout) :: exit_status
    end function

    integer(c_int) function weir_fabric_rank_c(fabric) bind(C, name="weir_fabric_rank")
      import
      type(c_ptr), value :: fabric
    end function

    integer(c_int) function weir_fabric_ranks_c(fabric) bind(C, name="weir_fabric_ranks")
      import
      type(c_ptr), value :: fabric
    end function

    logical(c_bool) function weir_fabric_is_alive_c(fabric, rank) bind(C, name="weir_fabric_is_alive")
      import
      type(c_ptr), value :: fabric
      integer(c_int), value :: rank
    end function

    type(c_ptr) function weir_fabric_link_c(fabric, rank) bind(C, name="weir_fabric_link")
      import
      type(c_ptr), value :: fabric
      integer(c_int), value :: rank
    end function

    integer(c_int) function weir_fabric_barrier_c(fabric, timeout_ns) bind(C, name="weir_fabric_barrier")
      import
      type(c_ptr), value :: fabric
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fabric_listen_c(fabric, handler, payload) bind(C, name="weir_fabric_listen")
      import
      type(c_ptr), value :: fabric, payload
      type(c_funptr), value :: handler
    end function

    integer(c_int) function weir_fortran_send_c(fabric, to, message) bind(C, name="weir_fortran_send")
      import
      type(c_ptr), value :: fabric
      integer(c_int), value :: to
      type(*), dimension(..), intent(in) :: message
    end function

    integer(c_int) function weir_fabric_progress_c(fabric, timeout_ns) bind(C, name="weir_fabric_progress")
      import
      type(c_ptr), value :: fabric
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_window_create_c(fabric, array, timeout_ns, window, element_bytes) &
      bind(C, name="weir_fortran_window_create")
      import
      type(c_ptr), value :: fabric
      type(*), dimension(..), intent(inout), target :: array
      integer(c_int64_t), value :: timeout_ns
      type(c_ptr), intent(inout) :: window
      integer(c_size_t), intent(out) :: element_bytes
    end function

    integer(c_int) function weir_window_create_c(fabric, memory, bytes, timeout_ns, window) &
      bind(C, name="weir_window_create")
      import
      type(c_ptr), value :: fabric, memory
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: timeout_ns
      type(c_ptr), intent(inout) :: window
    end function

    type(c_ptr) function weir_window_memory_c(window) bind(C, name="weir_window_memory")
      import
      type(c_ptr), value :: window
    end function

    subroutine weir_window_destroy_c(window) bind(C, name="weir_window_destroy")
      import
      type(c_ptr), value :: window
    end subroutine

    integer(c_int) function weir_fortran_put_c(window, rank, offset, data) bind(C, name="weir_fortran_put")
      import
      type(c_ptr), value :: window
      integer(c_int), value :: rank
      integer(c_size_t), value :: offset
      type(*), dimension(..), intent(in), target :: data
    end function

    integer(c_int) function weir_fortran_get_c(window, rank, offset, data) bind(C, name="weir_fortran_get")
      import
      type(c_ptr), value :: window
      integer(c_int), value :: rank
      integer(c_size_t), value :: offset
      type(*), dimension(..), intent(inout), target :: data
    end function

    integer(c_int) function weir_window_fetch_add_c(window, rank, offset, operand, old) &
      bind(C, name="weir_window_fetch_add")
      import
      type(c_ptr), value :: window
      integer(c_int), value :: rank
      integer(c_size_t), value :: offset
      integer(c_int64_t), value :: operand
      integer(c_int64_t), intent(inout) :: old
    end function

    integer(c_int) function weir_window_compare_swap_c(window, rank, offset, expected, desired, old) &
      bind(C, name="weir_window_compare_swap")
      import
      type(c_ptr), value :: window
      integer(c_int), value :: rank
      integer(c_size_t), value :: offset
      integer(c_int64_t), value :: expected, desired
      integer(c_int64_t), intent(inout) :: old
    end function

    integer(c_int) function weir_window_flush_c(window, rank, timeout_ns) bind(C, name="weir_window_flush")
      import
      type(c_ptr), value :: window
      integer(c_int), value :: rank
      integer(c_int64_t), value :: timeout_ns
    end function

    type(c_ptr) function weir_fabric_communicator_c(fabric) bind(C, name="weir_fabric_communicator")
      import
      type(c_ptr), value :: fabric
    end function

    integer(c_int) function weir_communicator_split_c(communicator, color, key, timeout_ns, group) &
      bind(C, name="weir_communicator_split")
      import
      type(c_ptr), value :: communicator
      integer(c_int64_t), value :: color, key, timeout_ns
      type(c_ptr), intent(inout) :: group
    end function

    integer(c_int) function weir_communicator_split_by_node_c(communicator, timeout_ns, group) &
      bind(C, name="weir_communicator_split_by_node")
      import
      type(c_ptr), value :: communicator
      integer(c_int64_t), value :: timeout_ns
      type(c_ptr), intent(inout) :: group
    end function

    integer(c_int) function weir_communicator_shrink_c(communicator, timeout_ns, group) &
      bind(C, name="weir_communicator_shrink")
      import
      type(c_ptr), value :: communicator
      integer(c_int64_t), value :: timeout_ns
      type(c_ptr), intent(inout) :: group
    end function

    integer(c_int) function weir_communicator_revoke_c(communicator) bind(C, name="weir_communicator_revoke")
      import
      type(c_ptr), value :: communicator
    end function

    subroutine weir_communicator_destroy_c(communicator) bind(C, name="weir_communicator_destroy")
      import
      type(c_ptr), value :: communicator
    end subroutine

    integer(c_int) function weir_communicator_rank_c(communicator) bind(C, name="weir_communicator_rank")
      import
      type(c_ptr), value :: communicator
    end function

    integer(c_int) function weir_communicator_size_c(communicator) bind(C, name="weir_communicator_size")
      import
      type(c_ptr), value :: communicator
    end function

    integer(c_int) function weir_communicator_fabric_rank_c(communicator, rank) &
      bind(C, name="weir_communicator_fabric_rank")
      import
      type(c_ptr), value :: communicator
      integer(c_int), value :: rank
    end function

    integer(c_int) function weir_communicator_barrier_c(communicator, timeout_ns) &
      bind(C, name="weir_communicator_barrier")
      import
      type(c_ptr), value :: communicator
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_broadcast_c(communicator, root, data, timeout_ns) &
      bind(C, name="weir_fortran_broadcast")
      import
      type(c_ptr), value :: communicator
      integer(c_int), value :: root
      type(*), dimension(..), intent(inout) :: data
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_gather_c(communicator, root, own, all, timeout_ns) &
      bind(C, name="weir_fortran_gather")
      import
      type(c_ptr), value :: communicator
      integer(c_int), value :: root
      type(*), dimension(..), intent(in) :: own
      type(*), dimension(..), intent(inout) :: all
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_scatter_c(communicator, root, all, own, timeout_ns) &
      bind(C, name="weir_fortran_scatter")
      import
      type(c_ptr), value :: communicator
      integer(c_int), value :: root
      type(*), dimension(..), intent(in) :: all
      type(*), dimension(..), intent(inout) :: own
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_all_to_all_c(communicator, parts, received, timeout_ns) &
      bind(C, name="weir_fortran_all_to_all")
      import
      type(c_ptr), value :: communicator
      type(*), dimension(..), intent(in) :: parts
      type(*), dimension(..), intent(inout) :: received
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_reduce_c(communicator, root, values, number, op, timeout_ns) &
      bind(C, name="weir_fortran_reduce")
      import
      type(c_ptr), value :: communicator
      integer(c_int), value :: root, number, op
      type(*), dimension(..), intent(inout) :: values
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_scan_c(communicator, exclusive, values, number, op, timeout_ns) &
      bind(C, name="weir_fortran_scan")
      import
      type(c_ptr), value :: communicator
      logical(c_bool), value :: exclusive
      type(*), dimension(..), intent(inout) :: values
      integer(c_int), value :: number, op
      integer(c_int64_t), value :: timeout_ns
    end function

    integer(c_int) function weir_fortran_grid_create_c(dimensions, cells, periodic, ranks, blocks, list, &
                                                       list_count, grid) &
      bind(C, name="weir_fortran_grid_create")
      import
      integer(c_int), value :: dimensions, ranks
      integer(c_size_t), intent(in) :: cells(3), periodic(3), blocks(3)
      type(weir_grid_block), intent(in) :: list(*)
      integer(c_size_t), value :: list_count
      type(c_ptr), intent(inout) :: grid
    end function

    subroutine weir_grid_destroy_c(grid) bind(C, name="weir_grid_destroy")
      import
      type(c_ptr), value :: grid
    end subroutine

    integer(c_int) function weir_fortran_grid_blocks_c(grid, blocks, capacity, count) &
      bind(C, name="weir_fortran_grid_blocks")
      import
      type(c_ptr), value :: grid
      type(weir_grid_block), intent(inout) :: blocks(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
    end function

    subroutine weir_fortran_grid_array_c(array, described) bind(C, name="weir_fortran_grid_array")
      import
      type(*), dimension(..), intent(in), target :: array
      type(weir_grid_array), intent(out) :: described
    end subroutine

    integer(c_int) function weir_fortran_halo_create_c(fabric, grid, arrays, array_count, width, corners, check, &
                                                       timeout_ns, halo) &
      bind(C, name="weir_fortran_halo_create")
      import
      type(c_ptr), value :: fabric, grid
      type(weir_grid_array), intent(in) :: arrays(*)
      integer(c_size_t), value :: array_count
      integer(c_size_t), intent(in) :: width(3)
      logical(c_bool), value :: corners, check
      integer(c_int64_t), value :: timeout_ns
      type(c_ptr), intent(inout) :: halo
    end function

    integer(c_int) function weir_halo_start_c(halo) bind(C, name="weir_halo_start")
      import
      type(c_ptr), value :: halo
    end function

    integer(c_int) function weir_halo_finish_c(halo, timeout_ns) bind(C, name="weir_halo_finish")
      import
      type(c_ptr), value :: halo
      integer(c_int64_t), value :: timeout_ns
    end function

    subroutine weir_halo_destroy_c(halo) bind(C, name="weir_halo_destroy")
      import
      type(c_ptr), value :: halo
    end subroutine
  end interface

contains

  ! ---- Fabric ------------------------------------------------------------------------------------

  !> Joins the fabric in which this process was started. lost_after: seconds of silence after which a rank
  !> counts as lost.
  subroutine weir_fabric_open(fabric, transport, progress, lost_after, stat, errmsg)
    type(weir_fabric), intent(out) :: fabric
    character(*), intent(in), optional :: transport, progress
    real(real64), intent(in), optional :: lost_after
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: lost_after_ns
    lost_after_ns = 0
    if (present(lost_after)) lost_after_ns = nanoseconds(lost_after)
    call report(weir_fortran_fabric_open_c(c_string(transport), c_string(progress), lost_after_ns, fabric%handle), &
                stat, errmsg)
  end subroutine

  !> Leaves the fabric.
  subroutine weir_fabric_close(fabric)
    type(weir_fabric), intent(inout) :: fabric
    call weir_fabric_close_c(fabric%handle)
    fabric%handle = c_null_ptr
  end subroutine

  !> Starts the program arguments(1) with the other arguments, without their trailing blanks, as ranks of this
  !> machine, and waits for their ends. exit_status: of the lowest rank that failed, else 0.
  subroutine weir_fabric_launch(ranks, arguments, exit_status, stat, errmsg)
    integer, intent(in) :: ranks
    character(*), intent(in) :: arguments(:)
    integer, intent(out) :: exit_status
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: letters(:, :)
    type(c_ptr), allocatable :: list(:)
    integer(c_int) :: ended
    integer :: i, j
    allocate (letters(len(arguments) + 1, size(arguments)), list(size(arguments) + 1))
    letters = c_null_char
    list = c_null_ptr
    do i = 1, size(arguments)
      do j = 1, len_trim(arguments(i))
        letters(j, i) = arguments(i)(j:j)
      end do
      list(i) = c_loc(letters(1, i))
    end do
    ended = 0
    call report(weir_fabric_launch_c(c_null_ptr, int(ranks, c_int), list, ended), stat, errmsg)
    exit_status = int(ended)
  end subroutine

  !> The number of this rank, from 0.
  integer function weir_fabric_rank(fabric)
    type(weir_fabric), intent(in) :: fabric
    weir_fabric_rank = int(weir_fabric_rank_c(fabric%handle))
  end function

  !> How many ranks there are.
  integer function weir_fabric_ranks(fabric)
    type(weir_fabric), intent(in) :: fabric
    weir_fabric_ranks = int(weir_fabric_ranks_c(fabric%handle))
  end function

  !> Whether a rank is in the fabric: it is not lost and has not left.
  logical function weir_fabric_is_alive(fabric, rank)
    type(weir_fabric), intent(in) :: fabric
    integer, intent(in) :: rank
    weir_fabric_is_alive = logical(weir_fabric_is_alive_c(fabric%handle, int(rank, c_int)))
  end function

  !> What connects this rank to a rank: "shm", "self", ...; empty if there is no such rank.
  function weir_fabric_link(fabric, rank) result(link)
    type(weir_fabric), intent(in) :: fabric
    integer, intent(in) :: rank
    character(:), allocatable :: link
    link = f_string(weir_fabric_link_c(fabric%handle, int(rank, c_int)))
  end function

  !> Waits until all live ranks have called it.
  subroutine weir_fabric_barrier(fabric, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fabric_barrier_c(fabric%handle, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine fabric_reduce_int64(fabric, values, op, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    integer(int64), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call reduce_int64(weir_fabric_communicator(fabric), values, op, timeout=timeout, stat=stat, errmsg=errmsg)
  end subroutine

  subroutine fabric_reduce_real64(fabric, values, op, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    real(real64), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call reduce_real64(weir_fabric_communicator(fabric), values, op, timeout=timeout, stat=stat, errmsg=errmsg)
  end subroutine

  !> Copies the data of rank `root` to the data of all other ranks.
  subroutine weir_fabric_broadcast(fabric, root, data, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    integer, intent(in) :: root
    type(*), dimension(..), intent(inout) :: data
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call weir_communicator_broadcast(weir_fabric_communicator(fabric), root, data, timeout, stat, errmsg)
  end subroutine

  ! ---- Messages ----------------------------------------------------------------------------------

  !> Sets the handler of this rank's messages; without one they are queued.
  subroutine weir_fabric_listen(fabric, handler, payload, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    procedure(weir_fabric_handler), optional :: handler
    type(c_ptr), intent(in), optional :: payload
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_funptr) :: code
    type(c_ptr) :: given
    code = c_null_funptr
    if (present(handler)) code = c_funloc(handler)
    given = c_null_ptr
    if (present(payload)) given = payload
    call report(weir_fabric_listen_c(fabric%handle, code, given), stat, errmsg)
  end subroutine

  !> Copies the message and sends it; blocks under backpressure.
  subroutine weir_fabric_send(fabric, to, message, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    integer, intent(in) :: to
    type(*), dimension(..), intent(in) :: message
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_send_c(fabric%handle, int(to, c_int), message), stat, errmsg)
  end subroutine

  !> Makes progress until the handler has returned from a message.
  subroutine weir_fabric_progress(fabric, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fabric_progress_c(fabric%handle, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  ! ---- Windows -----------------------------------------------------------------------------------

  !> Exposes an array of this rank to all ranks; sizes may differ and may be 0. Collective. The array is a
  !> TARGET and outlives the window. Its elements are those that other ranks address.
  subroutine weir_window_create(fabric, array, window, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    type(*), dimension(..), intent(inout), target :: array
    type(weir_window), intent(out) :: window
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_window_create_c(fabric%handle, array, nanoseconds(timeout), window%handle, &
                                             window%element_bytes), stat, errmsg)
  end subroutine

  subroutine allocate_int32(fabric, count, memory, window, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    integer(int64), intent(in) :: count
    integer(int32), pointer, intent(out) :: memory(:)
    type(weir_window), intent(out) :: window
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    call allocate_bytes(fabric, count, 4_c_size_t, address, window, timeout, stat, errmsg)
    memory => null()
    if (c_associated(address)) call c_f_pointer(address, memory, [count])
  end subroutine

  subroutine allocate_int64(fabric, count, memory, window, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    integer(int64), intent(in) :: count
    integer(int64), pointer, intent(out) :: memory(:)
    type(weir_window), intent(out) :: window
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    call allocate_bytes(fabric, count, 8_c_size_t, address, window, timeout, stat, errmsg)
    memory => null()
    if (c_associated(address)) call c_f_pointer(address, memory, [count])
  end subroutine

  subroutine allocate_real32(fabric, count, memory, window, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    integer(int64), intent(in) :: count
    real(real32), pointer, intent(out) :: memory(:)
    type(weir_window), intent(out) :: window
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    call allocate_bytes(fabric, count, 4_c_size_t, address, window, timeout, stat, errmsg)
    memory => null()
    if (c_associated(address)) call c_f_pointer(address, memory, [count])
  end subroutine

  subroutine allocate_real64(fabric, count, memory, window, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    integer(int64), intent(in) :: count
    real(real64), pointer, intent(out) :: memory(:)
    type(weir_window), intent(out) :: window
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    call allocate_bytes(fabric, count, 8_c_size_t, address, window, timeout, stat, errmsg)
    memory => null()
    if (c_associated(address)) call c_f_pointer(address, memory, [count])
  end subroutine

  !> address: null without elements, and after a failure.
  subroutine allocate_bytes(fabric, count, element_bytes, address, window, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    integer(int64), intent(in) :: count
    integer(c_size_t), intent(in) :: element_bytes
    type(c_ptr), intent(out) :: address
    type(weir_window), intent(out) :: window
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    address = c_null_ptr
    call report(weir_window_create_c(fabric%handle, c_null_ptr, count * element_bytes, nanoseconds(timeout), &
                                     window%handle), stat, errmsg)
    window%element_bytes = element_bytes
    if (count > 0 .and. c_associated(window%handle)) address = weir_window_memory_c(window%handle)
  end subroutine

  !> Ends the window on this rank: later accesses of other ranks fail.
  subroutine weir_window_destroy(window)
    type(weir_window), intent(inout) :: window
    call weir_window_destroy_c(window%handle)
    window%handle = c_null_ptr
  end subroutine

  !> The offset in bytes of an element.
  pure integer(c_size_t) function offset_of(window, index)
    type(weir_window), intent(in) :: window
    integer(int64), intent(in) :: index
    offset_of = (index - 1) * window%element_bytes
  end function

  !> Copies data to the memory of a rank, from element `index` on. The data, a TARGET, do not change until
  !> weir_window_flush().
  subroutine weir_window_put(window, rank, index, data, stat, errmsg)
    type(weir_window), intent(in) :: window
    integer, intent(in) :: rank
    integer(int64), intent(in) :: index
    type(*), dimension(..), intent(in), target :: data
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_put_c(window%handle, int(rank, c_int), offset_of(window, index), data), stat, errmsg)
  end subroutine

  !> Copies from the memory of a rank, from element `index` on, to data. The data, a TARGET, are not used until
  !> weir_window_flush().
  subroutine weir_window_get(window, rank, index, data, stat, errmsg)
    type(weir_window), intent(in) :: window
    integer, intent(in) :: rank
    integer(int64), intent(in) :: index
    type(*), dimension(..), intent(inout), target :: data
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_get_c(window%handle, int(rank, c_int), offset_of(window, index), data), stat, errmsg)
  end subroutine

  !> Adds to an element of a rank atomically. For windows of integers of 64 bits. old: the value before.
  subroutine weir_window_fetch_add(window, rank, index, operand, old, stat, errmsg)
    type(weir_window), intent(in) :: window
    integer, intent(in) :: rank
    integer(int64), intent(in) :: index, operand
    integer(int64), intent(out), optional :: old
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: before
    before = 0
    call report(weir_window_fetch_add_c(window%handle, int(rank, c_int), offset_of(window, index), operand, before), &
                stat, errmsg)
    if (present(old)) old = before
  end subroutine

  !> Replaces an element of a rank atomically by `desired` if it equals `expected`. For windows of integers of
  !> 64 bits. old: the value before.
  subroutine weir_window_compare_swap(window, rank, index, expected, desired, old, stat, errmsg)
    type(weir_window), intent(in) :: window
    integer, intent(in) :: rank
    integer(int64), intent(in) :: index, expected, desired
    integer(int64), intent(out), optional :: old
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: before
    before = 0
    call report(weir_window_compare_swap_c(window%handle, int(rank, c_int), offset_of(window, index), expected, &
                                           desired, before), stat, errmsg)
    if (present(old)) old = before
  end subroutine

  !> Waits until the puts and gets of this thread to a rank are complete and visible to all ranks.
  subroutine weir_window_flush(window, rank, timeout, stat, errmsg)
    type(weir_window), intent(in) :: window
    integer, intent(in) :: rank
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_window_flush_c(window%handle, int(rank, c_int), nanoseconds(timeout)), stat, errmsg)
  end subroutine

  ! ---- Communicators -----------------------------------------------------------------------------

  !> The communicator of all ranks. It ends with the fabric.
  type(weir_communicator) function weir_fabric_communicator(fabric) result(communicator)
    type(weir_fabric), intent(in) :: fabric
    communicator%handle = weir_fabric_communicator_c(fabric%handle)
  end function

  !> Divides a communicator: ranks of one color, at least 0, form a group, in the order of key, then of their
  !> rank. With WEIR_NO_COLOR the group has the size 0.
  subroutine weir_communicator_split(communicator, color, group, key, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    integer, intent(in) :: color
    type(weir_communicator), intent(out) :: group
    integer, intent(in), optional :: key
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: order
    order = 0
    if (present(key)) order = int(key, c_int64_t)
    call report(weir_communicator_split_c(communicator%handle, int(color, c_int64_t), order, nanoseconds(timeout), &
                                          group%handle), stat, errmsg)
  end subroutine

  !> Divides a communicator: ranks that share memory form a group.
  subroutine weir_communicator_split_by_node(communicator, group, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    type(weir_communicator), intent(out) :: group
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_communicator_split_by_node_c(communicator%handle, nanoseconds(timeout), group%handle), stat, errmsg)
  end subroutine

  !> Makes a group of the ranks that are left, in their order, after some have been lost.
  subroutine weir_communicator_shrink(communicator, group, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    type(weir_communicator), intent(out) :: group
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_communicator_shrink_c(communicator%handle, nanoseconds(timeout), group%handle), stat, errmsg)
  end subroutine

  !> Makes the operations of a communicator fail on all ranks. Not collective; any thread.
  subroutine weir_communicator_revoke(communicator, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_communicator_revoke_c(communicator%handle), stat, errmsg)
  end subroutine

  !> Not collective. That of all ranks stays valid.
  subroutine weir_communicator_destroy(communicator)
    type(weir_communicator), intent(inout) :: communicator
    call weir_communicator_destroy_c(communicator%handle)
    communicator%handle = c_null_ptr
  end subroutine

  !> The number of this rank in the communicator, from 0.
  integer function weir_communicator_rank(communicator)
    type(weir_communicator), intent(in) :: communicator
    weir_communicator_rank = int(weir_communicator_rank_c(communicator%handle))
  end function

  !> How many ranks it has; 0 for an invalid communicator.
  integer function weir_communicator_size(communicator)
    type(weir_communicator), intent(in) :: communicator
    weir_communicator_size = int(weir_communicator_size_c(communicator%handle))
  end function

  !> The rank of the fabric that is a rank of the communicator; -1 for a rank that the communicator does not have.
  integer function weir_communicator_fabric_rank(communicator, rank)
    type(weir_communicator), intent(in) :: communicator
    integer, intent(in) :: rank
    weir_communicator_fabric_rank = int(weir_communicator_fabric_rank_c(communicator%handle, int(rank, c_int)))
  end function

  pure integer(c_int) function root_of(root)
    integer, intent(in), optional :: root
    root_of = ALL_RANKS
    if (present(root)) root_of = int(root, c_int)
  end function

  !> Waits until all ranks have called it.
  subroutine weir_communicator_barrier(communicator, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_communicator_barrier_c(communicator%handle, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  !> Copies the data of rank `root` to the data of all ranks.
  subroutine weir_communicator_broadcast(communicator, root, data, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    integer, intent(in) :: root
    type(*), dimension(..), intent(inout) :: data
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_broadcast_c(communicator%handle, int(root, c_int), data, nanoseconds(timeout)), &
                stat, errmsg)
  end subroutine

  !> Copies `own` of each rank to `all` of rank `root` or of all ranks, in the order of the ranks. `all` has the
  !> size of `own` for each rank; it is not used on other ranks.
  subroutine weir_communicator_gather(communicator, own, all, root, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    type(*), dimension(..), intent(in) :: own
    type(*), dimension(..), intent(inout) :: all
    integer, intent(in), optional :: root
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_gather_c(communicator%handle, root_of(root), own, all, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  !> Copies part i of `all` on rank `root` to `own` on rank i. `all` has the size of `own` for each rank; it is
  !> not used on other ranks.
  subroutine weir_communicator_scatter(communicator, root, all, own, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    integer, intent(in) :: root
    type(*), dimension(..), intent(in) :: all
    type(*), dimension(..), intent(inout) :: own
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_scatter_c(communicator%handle, int(root, c_int), all, own, nanoseconds(timeout)), &
                stat, errmsg)
  end subroutine

  !> Copies part i of `parts` on rank r to part r of `received` on rank i. Both have equal parts for all ranks.
  subroutine weir_communicator_all_to_all(communicator, parts, received, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    type(*), dimension(..), intent(in) :: parts
    type(*), dimension(..), intent(inout) :: received
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_all_to_all_c(communicator%handle, parts, received, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine reduce_int32(communicator, values, op, root, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    integer(int32), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    integer, intent(in), optional :: root
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_reduce_c(communicator%handle, root_of(root), values, NUMBER_INT32, int(op, c_int), &
                                      nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine reduce_int64(communicator, values, op, root, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    integer(int64), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    integer, intent(in), optional :: root
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_reduce_c(communicator%handle, root_of(root), values, NUMBER_INT64, int(op, c_int), &
                                      nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine reduce_real32(communicator, values, op, root, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    real(real32), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    integer, intent(in), optional :: root
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_reduce_c(communicator%handle, root_of(root), values, NUMBER_FLOAT, int(op, c_int), &
                                      nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine reduce_real64(communicator, values, op, root, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    real(real64), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    integer, intent(in), optional :: root
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_reduce_c(communicator%handle, root_of(root), values, NUMBER_DOUBLE, int(op, c_int), &
                                      nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine scan_int32(communicator, values, op, exclusive, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    integer(int32), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    logical, intent(in), optional :: exclusive
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_scan_c(communicator%handle, is_true(exclusive), values, NUMBER_INT32, int(op, c_int), &
                                    nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine scan_int64(communicator, values, op, exclusive, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    integer(int64), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    logical, intent(in), optional :: exclusive
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_scan_c(communicator%handle, is_true(exclusive), values, NUMBER_INT64, int(op, c_int), &
                                    nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine scan_real32(communicator, values, op, exclusive, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    real(real32), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    logical, intent(in), optional :: exclusive
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_scan_c(communicator%handle, is_true(exclusive), values, NUMBER_FLOAT, int(op, c_int), &
                                    nanoseconds(timeout)), stat, errmsg)
  end subroutine

  subroutine scan_real64(communicator, values, op, exclusive, timeout, stat, errmsg)
    type(weir_communicator), intent(in) :: communicator
    real(real64), dimension(..), intent(inout) :: values
    integer, intent(in) :: op
    logical, intent(in), optional :: exclusive
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_fortran_scan_c(communicator%handle, is_true(exclusive), values, NUMBER_DOUBLE, int(op, c_int), &
                                    nanoseconds(timeout)), stat, errmsg)
  end subroutine

  ! ---- Grids and halos ---------------------------------------------------------------------------

  !> A value for each of three dimensions.
  pure function padded(values, otherwise) result(three)
    integer, intent(in) :: values(:), otherwise
    integer(c_size_t) :: three(3)
    integer :: given
    given = min(3, size(values))
    three = otherwise
    three(:given) = values(:given)
  end function

  !> Makes a grid of size(cells) dimensions, 2 or 3, for all ranks. blocks: how many in each dimension, by
  !> default one for each rank, with the smallest faces. list: blocks of any shape instead.
  subroutine weir_grid_create(cells, ranks, grid, periodic, blocks, list, stat, errmsg)
    integer, intent(in) :: cells(:), ranks
    type(weir_grid), intent(out) :: grid
    logical, intent(in), optional :: periodic(:)
    integer, intent(in), optional :: blocks(:)
    type(weir_grid_block), intent(in), optional :: list(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: wraps(3), cuts(3)
    type(weir_grid_block), allocatable :: boxes(:)
    integer :: i
    wraps = 0
    cuts = 0
    allocate (boxes(0))
    if (present(periodic)) wraps = padded(merge(1, 0, periodic), 0)
    if (present(blocks)) cuts = padded(blocks, 1)
    if (present(list)) boxes = list
    do i = 1, size(boxes)  ! C has half-open ranges from 0
      boxes(i)%first = boxes(i)%first - 1
    end do
    call report(weir_fortran_grid_create_c(size(cells, kind=c_int), padded(cells, 1), wraps, int(ranks, c_int), cuts, &
                                           boxes, size(boxes, kind=c_size_t), grid%handle), stat, errmsg)
  end subroutine

  !> Frees a grid; halos made with it remain valid.
  subroutine weir_grid_destroy(grid)
    type(weir_grid), intent(inout) :: grid
    call weir_grid_destroy_c(grid%handle)
    grid%handle = c_null_ptr
  end subroutine

  !> All blocks of a grid, or those of one rank.
  subroutine weir_grid_get_blocks(grid, blocks, rank, stat, errmsg)
    type(weir_grid), intent(in) :: grid
    type(weir_grid_block), allocatable, intent(out) :: blocks(:)
    integer, intent(in), optional :: rank
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: count
    integer(c_int) :: status
    integer :: i
    allocate (blocks(0))
    count = 0
    status = weir_fortran_grid_blocks_c(grid%handle, blocks, 0_c_size_t, count)
    if (status == 0) then
      deallocate (blocks)
      allocate (blocks(count))
      status = weir_fortran_grid_blocks_c(grid%handle, blocks, size(blocks, kind=c_size_t), count)
    end if
    do i = 1, size(blocks)
      blocks(i)%first = blocks(i)%first + 1
    end do
    if (present(rank)) blocks = pack(blocks, blocks%rank == rank)
    call report(status, stat, errmsg)
  end subroutine

  type(weir_grid_array) function array_of(array) result(described)
    type(*), dimension(..), intent(in), target :: array
    call weir_fortran_grid_array_c(array, described)
  end function

  !> Creates a halo. Collective. arrays: all fields of each block of this rank, block after block, in the order
  !> of the grid; on a rank without blocks any array of each field, for its type. width: in cells, at both ends
  !> of each dimension, 1 by default. corners: also edges and corners. check: tags each cell, for debugging.
  subroutine weir_halo_create(fabric, grid, arrays, halo, width, corners, check, timeout, stat, errmsg)
    type(weir_fabric), intent(in) :: fabric
    type(weir_grid), intent(in) :: grid
    type(weir_grid_array), intent(in) :: arrays(:)
    type(weir_halo), intent(out) :: halo
    integer, intent(in), optional :: width(:)
    logical, intent(in), optional :: corners, check
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: widths(3)
    widths = 1
    if (present(width)) widths = padded(width, 0)
    call report(weir_fortran_halo_create_c(fabric%handle, grid%handle, arrays, size(arrays, kind=c_size_t), widths, &
                                           is_true(corners), is_true(check), nanoseconds(timeout), halo%handle), &
                stat, errmsg)
  end subroutine

  !> Sends the cells of this rank's blocks that other blocks need.
  subroutine weir_halo_start(halo, stat, errmsg)
    type(weir_halo), intent(in) :: halo
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_halo_start_c(halo%handle), stat, errmsg)
  end subroutine

  !> Waits until all halos of this rank are filled.
  subroutine weir_halo_finish(halo, timeout, stat, errmsg)
    type(weir_halo), intent(in) :: halo
    real(real64), intent(in), optional :: timeout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call report(weir_halo_finish_c(halo%handle, nanoseconds(timeout)), stat, errmsg)
  end subroutine

  !> Frees a halo.
  subroutine weir_halo_destroy(halo)
    type(weir_halo), intent(inout) :: halo
    call weir_halo_destroy_c(halo%handle)
    halo%handle = c_null_ptr
  end subroutine
end module
