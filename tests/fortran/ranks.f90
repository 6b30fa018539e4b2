! Programs of several ranks: messages, windows, communicators, halos, errors.
!
!   ranks N               starts itself as N ranks
!   ranks rank            checks, as a rank of the launcher that started it
module handlers
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
contains
  !> Writes the second number of the message to the payload; -2 if the first is not the sender.
  subroutine take(from, message, bytes, payload) bind(C)
    integer(c_int), value :: from
    type(c_ptr), value :: message, payload
    integer(c_size_t), value :: bytes
    integer(int64), pointer :: numbers(:), received
    call c_f_pointer(message, numbers, [bytes / 8])
    call c_f_pointer(payload, received)
    received = -2
    if (size(numbers) == 2 .and. numbers(1) == from) received = numbers(2)
  end subroutine
end module

program ranks_test
  use, intrinsic :: iso_c_binding, only: c_loc
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use weir, only: WEIR_STATUS_OK, WEIR_STATUS_INVALID_ARGUMENT, WEIR_STATUS_TIMEOUT
  use weir_ranks
  use checks
  use handlers
  implicit none
  type(weir_fabric) :: fabric
  character(32) :: what
  character(1000) :: path
  integer :: rank, ranks, left, right, ended

  call get_command_argument(1, what)
  if (what /= "rank") then
    read (what, *) ranks
    call get_command_argument(0, path)
    call weir_fabric_launch(ranks, [character(1000) :: path, "rank"], ended)
    if (ended /= 0) error stop "a rank failed"
  else
    call weir_fabric_open(fabric, lost_after=60._real64)
    rank = weir_fabric_rank(fabric)
    ranks = weir_fabric_ranks(fabric)
    left = mod(rank + ranks - 1, ranks)
    right = mod(rank + 1, ranks)
    call check_fabric
    call check_messages
    call check_windows
    call check_atomics
    call check_groups
    call check_reductions
    call check_halo
    call check_corners
    call check_refusals
    call weir_fabric_close(fabric)
    call finish("ranks")
  end if

contains

  subroutine check_fabric
    integer(int64) :: counts(2)
    real(real64) :: value
    real(real32) :: pair(2)
    integer :: status
    call expect(ranks >= 1 .and. rank >= 0 .and. rank < ranks, "numbers of ranks")
    call expect(weir_fabric_is_alive(fabric, left), "the left rank is in the fabric")
    call expect(.not. weir_fabric_is_alive(fabric, ranks), "there is no rank with the number of ranks")
    call expect(weir_fabric_link(fabric, rank) == "self", "the link to this rank")
    call expect(weir_fabric_link(fabric, ranks) == "", "no link to no rank")
    call weir_fabric_barrier(fabric)
    counts = [int(rank, int64), 1_int64]
    call weir_fabric_reduce(fabric, counts, WEIR_FABRIC_OP_SUM)
    call expect(all(counts == [ranks * (ranks - 1) / 2, ranks]), "a sum of integers")
    value = rank
    call weir_fabric_reduce(fabric, value, WEIR_FABRIC_OP_MAX, timeout=60._real64)
    call expect(nint(value) == ranks - 1, "a maximum of reals")
    pair = [real(rank, real32), 0.5]
    call weir_fabric_broadcast(fabric, ranks - 1, pair)
    call expect(all(abs(pair - [ranks - 1., 0.5]) < 1e-6), "a broadcast")
    call weir_fabric_progress(fabric, timeout=0.01_real64, stat=status)
    call expect(ranks == 1 .or. status == WEIR_STATUS_TIMEOUT, "no message has come")
  end subroutine

  subroutine check_messages
    integer(int64), target, volatile :: received
    received = -1
    call weir_fabric_listen(fabric, take, c_loc(received))
    call weir_fabric_send(fabric, right, [int(rank, int64), 100 + int(rank, int64)])
    do while (received == -1)
      call weir_fabric_progress(fabric)
    end do
    call expect(received == 100 + left, "the message of the left rank")
    call weir_fabric_listen(fabric)
    call weir_fabric_barrier(fabric)
  end subroutine

  subroutine check_windows
    type(weir_window) :: edge, marks
    real(real64), pointer :: memory(:)
    real(real64), target :: values(3), back
    integer(int32), target :: table(2, 4), mark
    integer :: status
    character(160) :: message
    call weir_window_allocate(fabric, 10_int64, memory, edge)
    values = rank + [0.25_real64, 0.5_real64, 0.75_real64]
    call weir_window_put(edge, right, 4_int64, values)
    call weir_window_flush(edge, right)
    call weir_fabric_barrier(fabric)
    call expect(all(abs(memory(4:6) - (left + [0.25_real64, 0.5_real64, 0.75_real64])) < 1e-12_real64), "a put")
    call expect(all(abs(memory([1, 2, 3, 7, 8, 9, 10])) < 1e-12_real64), "the other elements are zero")
    call weir_window_get(edge, right, 5_int64, back)
    call weir_window_flush(edge, right, timeout=60._real64)
    call expect(abs(back - (rank + 0.5_real64)) < 1e-12_real64, "a get")
    call weir_window_put(edge, right, 9_int64, values, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "outside") > 0, "past the end: " // message)
    call weir_window_put(edge, right, 0_int64, values, stat=status)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT, "before the first element")

    table = rank
    mark = 1000 + rank
    call weir_window_create(fabric, table, marks)
    call weir_window_put(marks, right, 3_int64, mark)
    call weir_window_flush(marks, right)
    call weir_fabric_barrier(fabric)
    call expect(table(1, 2) == 1000 + left .and. count(table == rank) == 7, "a put into an array")
    call weir_fabric_barrier(fabric)
    call weir_window_destroy(marks)
    call weir_window_destroy(edge)
  end subroutine

  subroutine check_atomics
    type(weir_window) :: window
    integer(int64), pointer :: counter(:)
    integer(int64) :: ticket, mine, winners
    call weir_window_allocate(fabric, merge(1_int64, 0_int64, rank == 0), counter, window)
    call expect(associated(counter) .eqv. rank == 0, "memory where there are elements")
    mine = 0
    do
      call weir_window_fetch_add(window, 0, 1_int64, 1_int64, ticket)
      if (ticket >= 100) exit
      mine = mine + 1
    end do
    call weir_fabric_reduce(fabric, mine, WEIR_FABRIC_OP_SUM)
    call expect(mine == 100, "each ticket once")
    call weir_window_compare_swap(window, 0, 1_int64, int(100 + ranks, int64), -1_int64, ticket)
    winners = merge(1, 0, ticket == 100 + ranks)
    call weir_fabric_reduce(fabric, winners, WEIR_FABRIC_OP_SUM)
    call expect(winners == 1, "one rank swaps")
    call weir_window_fetch_add(window, 0, 1_int64, 0_int64)
    call weir_fabric_barrier(fabric)
    call weir_window_destroy(window)
  end subroutine

  !> Even and odd ranks as two groups, each in the opposite order.
  subroutine check_groups
    type(weir_communicator) :: all_ranks, half, node, one, left_over
    integer(int32) :: own(2)
    integer(int32), allocatable :: table(:, :), parts(:), received(:)
    integer :: size_of_half, me, i, status
    character(160) :: message
    all_ranks = weir_fabric_communicator(fabric)
    call expect(weir_communicator_rank(all_ranks) == rank .and. weir_communicator_size(all_ranks) == ranks, "all ranks")
    call weir_communicator_split(all_ranks, mod(rank, 2), half, key=-rank)
    size_of_half = (ranks + 1 - mod(rank, 2)) / 2
    me = size_of_half - 1 - rank / 2
    call expect(weir_communicator_size(half) == size_of_half .and. weir_communicator_rank(half) == me, "a half")
    call expect(weir_communicator_fabric_rank(half, me) == rank, "the rank of the fabric")
    call expect(weir_communicator_fabric_rank(half, size_of_half) == -1, "there is no such rank in the half")

    allocate (table(2, size_of_half), parts(size_of_half), received(size_of_half))
    own = [rank, 10 * rank]
    call weir_communicator_gather(half, own, table)
    do i = 1, size_of_half
      call expect(all(table(:, i) == [1, 10] * weir_communicator_fabric_rank(half, i - 1)), "gathered on all ranks")
    end do
    own = 0
    call weir_communicator_scatter(half, 0, table, own)
    call expect(all(own == [rank, 10 * rank]), "scattered")
    if (me > 0) deallocate (table)
    if (me > 0) allocate (table(2, 0))  ! not used there
    call weir_communicator_gather(half, own, table, root=0)
    if (me == 0) call expect(table(1, size_of_half) == weir_communicator_fabric_rank(half, size_of_half - 1), "gathered")
    parts = [(100 * me + i, i=1, size_of_half)]
    call weir_communicator_all_to_all(half, parts, received)
    call expect(all(received == [(100 * (i - 1) + me + 1, i=1, size_of_half)]), "all to all")
    call weir_communicator_broadcast(half, 0, received)
    call expect(received(1) == 1, "broadcast in the half")
    call weir_communicator_gather(half, own(1), received(:0), stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "size") > 0, "wrong sizes: " // message)

    call weir_communicator_split(all_ranks, merge(0, WEIR_NO_COLOR, rank == 0), one)
    call expect(weir_communicator_size(one) == merge(1, 0, rank == 0), "a rank without a color is in no group")
    call weir_communicator_destroy(one)
    call weir_communicator_split_by_node(all_ranks, node)
    call expect(weir_communicator_fabric_rank(node, weir_communicator_rank(node)) == rank, "the ranks of a node")
    call weir_communicator_barrier(node)
    call weir_communicator_shrink(half, left_over)
    call expect(weir_communicator_size(left_over) == size_of_half, "no rank was lost")
    call weir_communicator_barrier(left_over, timeout=60._real64)
    call weir_fabric_barrier(fabric)
    call weir_communicator_revoke(left_over)
    call weir_communicator_barrier(left_over, stat=status)
    call expect(status /= WEIR_STATUS_OK, "a revoked communicator")
    call weir_communicator_destroy(left_over)
    call weir_communicator_destroy(node)
    call weir_communicator_destroy(half)
  end subroutine

  subroutine check_reductions
    type(weir_communicator) :: all_ranks
    integer(int32) :: small
    integer(int64) :: large(2, 2)
    real(real32) :: single(3)
    real(real64) :: double
    all_ranks = weir_fabric_communicator(fabric)
    small = rank + 1
    call weir_communicator_reduce(all_ranks, small, WEIR_FABRIC_OP_SUM)
    call expect(small == ranks * (ranks + 1) / 2, "a sum of 32 bits")
    large = reshape([5000000000_int64, -5_int64, int(rank, int64), 0_int64], [2, 2])
    call weir_communicator_reduce(all_ranks, large, WEIR_FABRIC_OP_MAX)
    call expect(large(1, 1) == 5000000000_int64 .and. large(1, 2) == ranks - 1, "a maximum of 64 bits")
    single = [1.5, 2.5, 3.5] + rank
    call weir_communicator_reduce(all_ranks, single, WEIR_FABRIC_OP_MIN)
    call expect(all(abs(single - [1.5, 2.5, 3.5]) < 1e-6), "a minimum of 32 bits")
    double = 2
    call weir_communicator_reduce(all_ranks, double, WEIR_FABRIC_OP_PRODUCT, root=ranks - 1)
    if (rank == ranks - 1) call expect(abs(double - 2._real64**ranks) < 1e-12_real64, "a product on one rank")

    small = 1
    call weir_communicator_scan(all_ranks, small, WEIR_FABRIC_OP_SUM)
    call expect(small == rank + 1, "a scan of 32 bits")
    large = 5
    call weir_communicator_scan(all_ranks, large, WEIR_FABRIC_OP_SUM, exclusive=.true.)
    call expect(all(large == merge(5, 5 * rank, rank == 0)), "an exclusive scan of 64 bits")
    single = 0.5
    call weir_communicator_scan(all_ranks, single, WEIR_FABRIC_OP_SUM)
    call expect(all(abs(single - 0.5 * (rank + 1)) < 1e-6), "a scan of reals of 32 bits")
    double = rank
    call weir_communicator_scan(all_ranks, double, WEIR_FABRIC_OP_MAX)
    call expect(nint(double) == rank, "a scan of reals of 64 bits")
  end subroutine

  !> Two fields on a grid that is a ring in its second dimension.
  subroutine check_halo
    type(weir_grid) :: grid
    type(weir_halo) :: halo, refused
    type(weir_grid_block), allocatable :: blocks(:)
    real(real64), allocatable, target :: a(:, :)
    integer(int32), allocatable, target :: b(:, :)
    integer :: low, high, i, j, step, status
    character(160) :: message
    call weir_grid_create([6, 4 * ranks], ranks, grid, periodic=[.false., .true.], blocks=[1, ranks])
    call weir_grid_get_blocks(grid, blocks)
    call expect(size(blocks) == ranks .and. all(blocks%rank == [(i, i=0, ranks - 1)]), "one block for each rank")
    call weir_grid_get_blocks(grid, blocks, rank=rank)
    call expect(size(blocks) == 1, "the block of this rank")
    low = 4 * rank + 1
    high = 4 * rank + 4
    call expect(all(blocks(1)%first == [1, low, 1]) .and. all(blocks(1)%last == [6, high, 1]), "its cells")
    allocate (a(0:7, low - 1:high + 1), b(0:7, low - 1:high + 1))
    a = -1
    b = -1
    call weir_halo_create(fabric, grid, [weir_grid_array(a), weir_grid_array(b)], halo)
    do step = 1, 2
      do j = low, high
        a(1:6, j) = [(i + 100 * j + step, i=1, 6)]
        b(1:6, j) = [(i + 200 * j + step, i=1, 6)]
      end do
      call weir_halo_start(halo)
      call weir_halo_finish(halo, timeout=60._real64)
      j = merge(low - 1, 4 * ranks, rank > 0)
      call expect(all(nint(a(1:6, low - 1)) == [(i + 100 * j + step, i=1, 6)]), "the halo before the block")
      j = merge(high + 1, 1, rank < ranks - 1)
      call expect(all(b(1:6, high + 1) == [(i + 200 * j + step, i=1, 6)]), "the halo after the block")
      call expect(all(b(0, :) == -1) .and. all(nint(a(7, :)) == -1), "the halo at a border")
    end do
    call weir_halo_destroy(halo)
    call weir_halo_create(fabric, grid, [weir_grid_array(a(:, low:)), weir_grid_array(b)], refused, stat=status, &
                          errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "array 1 of the halo has 5 cells") > 0, &
                "an array without a halo: " // message)
    call weir_halo_create(fabric, grid, [weir_grid_array(a(:, low))], refused, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "rank 2") > 0, "a vector: " // message)
    call weir_grid_destroy(grid)
  end subroutine

  !> Three dimensions, blocks that the program chooses, and arrays with gaps.
  subroutine check_corners
    type(weir_grid) :: grid
    type(weir_halo) :: halo
    type(weir_grid_block) :: boxes(ranks)
    real(real32), allocatable, target :: c(:, :, :)
    integer :: low, high, i, j
    do i = 1, ranks
      boxes(i)%first = [1, 1, 3 * i - 2]
      boxes(i)%last = [4, 4, 3 * i]
      boxes(i)%rank = i - 1
    end do
    call weir_grid_create([4, 4, 3 * ranks], ranks, grid, list=boxes)
    low = 3 * rank + 1
    high = 3 * rank + 3
    allocate (c(0:5, 0:6, low - 1:high + 1))  ! a column too many
    c = -1
    do i = 1, 4
      do j = 1, 4
        c(i, j, low:high) = 10 * i + j
      end do
    end do
    call weir_halo_create(fabric, grid, [weir_grid_array(c(:, :5, :))], halo, width=[1, 1, 1], corners=.true., &
                          check=.true.)
    call weir_halo_start(halo)
    call weir_halo_finish(halo)
    call expect(nint(c(2, 3, low - 1)) == merge(23, -1, rank > 0), "the plane before the block")
    call expect(nint(c(2, 3, high + 1)) == merge(23, -1, rank < ranks - 1), "the plane after the block")
    call weir_halo_destroy(halo)
    call weir_grid_destroy(grid)
  end subroutine

  subroutine check_refusals
    type(weir_grid) :: grid
    integer(int32) :: gaps(2, 4)
    integer :: status
    character(160) :: message
    gaps = 0
    call weir_fabric_broadcast(fabric, 0, gaps(1, :), stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "gaps") > 0, "data with gaps: " // message)
    call weir_grid_create([4], ranks, grid, stat=status, errmsg=message)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT .and. index(message, "dimensions") > 0, "a line: " // message)
    call weir_fabric_send(fabric, ranks, gaps, stat=status)
    call expect(status == WEIR_STATUS_INVALID_ARGUMENT, "there is no such rank")
    call weir_fabric_barrier(fabric)
  end subroutine
end program
