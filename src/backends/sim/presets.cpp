#include "backends/sim/presets.hpp"

namespace weir::rt {

namespace {

// Costs of a coprocessor that its host starts by COI and that runs OpenMP teams.
#define WEIR_KNC_COSTS                                                                           \
  "threads=4,duplex=half,latency_us=10,tile_loss=158,syrk=0.9,trsm=0.8,potrf=0.35,launch_us=20," \
  "team_us=5,fork_us=0.1,contention=1.35,enqueue_us=2,notice_us=5,allocation_us=100,"            \
  "allocation_gbps=3"
#define WEIR_KNC_SOURCES                                                                           \
  "; link: paper 000, Figure 4; launch_us: COI's run function, 20 to 50 us, recalled; team_us, "   \
  "fork_us: parallel-for of 240 threads in 20 to 30 us, recalled; contention, syrk, trsm, potrf, " \
  "enqueue_us, notice_us, allocation: assumed"

constexpr DomainPreset kPresets[] = {
    {"sim:phi-31sp",
     "cores=57,reserved=1,gbps=6.9,gflops=16.4,memory_gbps=140,memory=8GB," WEIR_KNC_COSTS,
     "Xeon Phi 31SP. cores, threads: paper 000; gflops, tile_loss, memory_gbps: "
     "assumed" WEIR_KNC_SOURCES},
    {"sim:knc-7120",
     "cores=61,reserved=1,gbps=6.9,gflops=18.8,memory_gbps=175,memory=16GB," WEIR_KNC_COSTS,
     "Xeon Phi 7120A. cores, threads, memory: paper 001; gflops, tile_loss: dgemm of 1 TFLOP/s, "
     "recalled; memory_gbps: assumed, 157 measured by an owner" WEIR_KNC_SOURCES},
    {"host:hsw-e5-2697v3",
     "cores=28,gflops=33.5,tile_loss=100,memory_gbps=82,core_gbps=20,memory=64GB,syrk=0.95,"
     "trsm=0.9,potrf=0.7,team_us=2,fork_us=0.05,enqueue_us=2,notice_us=2",
     "2 x Xeon E5-2697v3. cores, memory at 1600 MHz: paper 001; gflops: at the AVX clock, assumed; "
     "core_gbps: measured by Puget Systems with DDR4-2133, memory_gbps: scaled from there; "
     "others: assumed"},
    {"host:ivb-e5-2697v2",
     "cores=24,gflops=20.2,tile_loss=60,memory_gbps=75,core_gbps=8.7,memory=64GB,syrk=0.95,"
     "trsm=0.9,potrf=0.7,team_us=2,fork_us=0.05,enqueue_us=2,notice_us=2",
     "2 x Xeon E5-2697v2. cores: paper 001; memory_gbps, core_gbps: measured by Puget Systems; "
     "others: assumed"},
    {"sim:k40x",
     "cores=15,gbps=10,latency_us=8,gflops=85,memory_gbps=220,memory=12GB,launch_us=6,"
     "enqueue_us=3,notice_us=10,allocation_us=50,allocation_gbps=20",
     "Tesla K40x, a core is an SMX. cores, clock: paper 001; gflops, memory_gbps: assumed shares "
     "of "
     "1680 GFLOP/s and 288 GB/s; link and launches: usual for CUDA, measured by others"},
    {"sim:gtx-1080",
     "cores=20,gbps=12,latency_us=8,gflops=355,memory_gbps=272,memory=8GB,launch_us=6,"
     "enqueue_us=3,notice_us=10,allocation_us=50,allocation_gbps=50,pool=on",
     "GeForce GTX 1080 of paper 002, a core is an SM. gflops: of floats, 0.8 of the vendor's 8873, "
     "assumed; memory_gbps: 0.85 of the vendor's 320, assumed; link and launches: usual for CUDA "
     "over PCIe 3, measured by others; allocation: assumed; pool: as of h100-pcie"},
    {"sim:v100",
     "cores=80,gbps=12,latency_us=8,gflops=140,memory_gbps=780,memory=16GB,launch_us=5,"
     "enqueue_us=3,notice_us=10,allocation_us=50,allocation_gbps=50,pool=on",
     "Tesla V100 PCIe of paper 002, a core is an SM. gflops: of floats, 0.8 of the vendor's 14000, "
     "assumed; memory_gbps: 0.87 of the vendor's 900, assumed; others: as of gtx-1080"},
    {"sim:h100-pcie",
     "cores=114,gbps=55,latency_us=8,gflops=380,memory_gbps=1800,memory=80GB,launch_us=4,"
     "enqueue_us=3,notice_us=8,allocation_us=50,allocation_gbps=100,pool=on",
     "H100 PCIe, a core is an SM. gflops: 0.85 of the vendor's 51 TFLOP/s of tensor cores, "
     "assumed; "
     "memory_gbps: 0.9 of the vendor's 2000, assumed; gbps: nvbandwidth, measured; launches: "
     "measured by others; pool: weir allocates from a pool of CUDA"},
    {"sim:h100-sxm",
     "cores=132,gbps=55,latency_us=8,gflops=431,memory_gbps=3080,memory=80GB,launch_us=4,"
     "enqueue_us=3,notice_us=8,allocation_us=50,allocation_gbps=100,pool=on",
     "H100 SXM. gflops: HPL of 55 to 59 TFLOP/s a GPU, measured; memory_gbps: 0.92 of the vendor's "
     "3350, assumed; others: as of h100-pcie"},
    {"sim:gh200",
     "cores=132,gbps=375,gbps_out=297,latency_us=2,gflops=431,memory_gbps=3400,memory=96GB,"
     "launch_us=4,enqueue_us=3,notice_us=8,allocation_us=50,allocation_gbps=100,pool=on",
     "GH200. gbps, gbps_out: NVLink-C2C, measured at KTH; memory_gbps: measured there; gflops: as "
     "of "
     "h100-sxm; latency_us: assumed"},
    {"sim:mi300x",
     "cores=304,gbps=55,latency_us=10,gflops=322,memory_gbps=4240,memory=192GB,launch_us=5,"
     "enqueue_us=4,notice_us=10,allocation_us=100,allocation_gbps=100",
     "Instinct MI300X, a core is a compute unit. gflops: 0.6 of the vendor's 163 TFLOP/s of matrix "
     "cores, assumed; memory_gbps: 0.8 of the vendor's 5300, assumed; link: the vendor's"},
};

#undef WEIR_KNC_COSTS
#undef WEIR_KNC_SOURCES

}  // namespace

std::span<const DomainPreset> simulated_presets() noexcept { return kPresets; }

}  // namespace weir::rt
