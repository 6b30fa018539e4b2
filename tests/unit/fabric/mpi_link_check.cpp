// The slots of sends of a link over MPI whose other ranks take nothing. One process, which MPI says
// has some more beside it: sends and receives are receives of what no rank sends.
#include <mpi.h>

namespace {

constexpr int kRanks = 12;

int say_ranks(MPI_Comm, int* ranks) {
  *ranks = kRanks;
  return MPI_SUCCESS;
}

int wait_for_nothing(void* buffer, int bytes, MPI_Request* request) {
  constexpr int kNobodysTag = 1;
  return MPI_Irecv(buffer, bytes, MPI_BYTE, 0, kNobodysTag, MPI_COMM_SELF, request);
}

int receive_nothing(void* buffer, int bytes, MPI_Datatype, int, int, MPI_Comm,
                    MPI_Request* request) {
  return wait_for_nothing(buffer, bytes, request);
}

int send_for_ever(const void* buffer, int bytes, MPI_Datatype, int, int, MPI_Comm,
                  MPI_Request* request) {
  return wait_for_nothing(const_cast<void*>(buffer), bytes, request);
}

}  // namespace

#define MPI_Comm_size say_ranks
#define MPI_Irecv receive_nothing
#define MPI_Isend send_for_ever
#include "fabric/mpi/mpi_link.cpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

/// Sends packets until there is no room. Returns how many.
std::size_t fill(Link& link, Rank to) {
  const std::byte byte{};
  const std::span<const std::byte> packet(&byte, 1);
  std::size_t sent = 0;
  while (sent < 100 && link.send(to, {&packet, 1})) ++sent;
  return sent;
}

TEST(MpiLink, SendsToLostRanks_FreeTheirSlots) {
  char message[200] = "";
  const std::unique_ptr<Link> link(weir_mpi_link_open(message, sizeof message));
  ASSERT_NE(link, nullptr) << message;
  ASSERT_EQ(link->info().ranks, Rank{kRanks});
  Rank full = 1;
  std::size_t sent = 0;
  while (const std::size_t more = fill(*link, full)) {
    sent += more;
    ++full;
  }
  ASSERT_LT(full, Rank{kRanks - 1});
  EXPECT_FALSE(link->drained());
  EXPECT_EQ(fill(*link, full), 0u) << "there are slots for more";
  link->cut(1, false);
  EXPECT_EQ(fill(*link, full), sent / (full - 1));
  link->cut(2, true);
  EXPECT_EQ(fill(*link, full + 1), sent / (full - 1));
  for (Rank rank = 3; rank < Rank{kRanks}; ++rank) link->cut(rank, false);
  EXPECT_TRUE(link->drained());
}

}  // namespace
}  // namespace weir::rt
