// Waiting for another stream's event inside the stream, against waiting on the calling thread.
#include <cmath>
#include <sstream>

#include <weir/weir.hpp>

#include "common/program.hpp"

namespace weir_bench {
namespace {

/// The device of paper 001 computes 10^12 operations while its link moves 6 GB.
constexpr double paper_flops = 1e12, paper_gbps = 6;

/// C += A B, tile by tile, on a device: rows of tiles are uploaded, computed and downloaded, with
/// one stream for the transfers and two for the kernels.
class Multiplication {
 public:
  Multiplication(const std::string& domain, long n, long tile)
      : runtime_(domain),
        n_(static_cast<std::size_t>(n)),
        tile_(static_cast<std::size_t>(tile)),
        tiles_(n_ / tile_),
        gemm_(runtime_.kernel("blas.dgemm")),
        a_(make(1.0)),
        b_(make(0.5)),
        c_(make(0.0)),
        place_(runtime_.domain(0).place()),
        transfers_(place_.stream()) {
    for (int index = 0; index < 2; ++index) computes_.push_back(place_.stream());
  }

  double with_waits_in_streams() { return timed(true); }
  double with_waits_on_the_host() { return timed(false); }

  /// Rate of the device's cores with data in place, in flop/s.
  double rate() {
    const auto once = [&] {
      return time_of([&] {
        for (std::size_t row = 0; row < tiles_; ++row) compute_row(row);
        runtime_.synchronize();
      });
    };
    static_cast<void>(once());
    return 2 * std::pow(static_cast<double>(n_), 3) / once();
  }

  /// Throws unless every entry of c is that of `products` products.
  void check(double products) const {
    const double expected = products * 0.5 * static_cast<double>(n_);
    for (std::size_t index = 0; index < n_ * n_; ++index) {
      if (c_.data<double>()[index] != expected) {
        throw std::runtime_error("wrong result: entry " + std::to_string(index) + " is " +
                                 std::to_string(c_.data<double>()[index]));
      }
    }
  }

 private:
  weir::Buffer make(double value) const {
    weir::Buffer buffer = runtime_.buffer(n_ * n_ * sizeof(double));
    std::fill_n(buffer.data<double>(), n_ * n_, value);
    return buffer;
  }
  weir::Region tile(const weir::Buffer& buffer, std::size_t row, std::size_t column) const {
    return buffer.tile<double>(row * tile_, column * tile_, tile_, tile_, n_);
  }
  const weir::Stream& compute_stream(std::size_t row, std::size_t column) const {
    return computes_[(row + column) % computes_.size()];
  }

  /// Orders `stream` after the events: inside it, for the tiles, or by waiting here.
  void order(const weir::Stream& stream, const std::vector<weir::Event>& events,
             const std::vector<weir::Region>& parts, bool in_streams) const {
    if (!in_streams) return runtime_.wait(events);
    for (std::size_t index = 0; index < events.size(); ++index) {
      stream.wait(events[index], parts[index]);
    }
  }

  double timed(bool in_streams) {
    return time_of([&] {
      for (std::size_t row = 0; row < tiles_; ++row) {
        upload_row(row, in_streams);
        const auto computed = compute_row(row);
        std::vector<weir::Region> parts;
        for (std::size_t column = 0; column < tiles_; ++column) {
          parts.push_back(tile(c_, row, column));
        }
        order(transfers_, computed, parts, in_streams);
        for (const weir::Region& part : parts) transfers_.download(part);
      }
      runtime_.synchronize();
    });
  }

  /// Uploads what the row needs and the device does not have, and orders the compute streams after.
  void upload_row(std::size_t row, bool in_streams) {
    std::vector<weir::Event> events;
    std::vector<weir::Region> parts;
    const auto upload = [&](const weir::Region& part) {
      events.push_back(transfers_.upload(part));
      parts.push_back(part);
    };
    for (std::size_t step = 0; step < tiles_; ++step) upload(tile(a_, row, step));
    for (std::size_t column = 0; column < tiles_; ++column) {
      upload(tile(c_, row, column));
      if (row > 0) continue;
      for (std::size_t step = 0; step < tiles_; ++step) upload(tile(b_, step, column));
    }
    for (const weir::Stream& stream : computes_) order(stream, events, parts, in_streams);
  }

  /// Enqueues the products of a row of tiles; returns the last event of each tile.
  std::vector<weir::Event> compute_row(std::size_t row) const {
    std::vector<weir::Event> last(tiles_);
    for (std::size_t column = 0; column < tiles_; ++column) {
      for (std::size_t step = 0; step < tiles_; ++step) {
        last[column] =
            compute_stream(row, column)
                .compute(gemm_,
                         {weir::read(tile(a_, row, step)), weir::read(tile(b_, step, column)),
                          weir::readwrite(tile(c_, row, column))},
                         {'N', 'N', 1.0, 1.0});
      }
    }
    return last;
  }

  weir::Runtime runtime_;
  std::size_t n_, tile_, tiles_;
  weir::Kernel gemm_;
  weir::Buffer a_, b_, c_;
  weir::Place place_;
  weir::Stream transfers_;
  std::vector<weir::Stream> computes_;
};

nlohmann::json run(const Arguments& arguments) {
  const long n = arguments.number("--n", 4096), tile = arguments.number("--tile", 512);
  const double rate = Multiplication("sim:cores=2", std::min(n, 2048L), tile).rate();
  std::ostringstream domain;
  domain.precision(3);
  domain << "sim:cores=2,duplex=half,latency_us=10,gbps=" << paper_gbps * rate / paper_flops;
  Multiplication product(domain.str(), n, tile);
  const long repeats = arguments.number("--repeats", 1);
  static_cast<void>(product.with_waits_in_streams());  // the device's memory is touched first here
  std::vector<double> in_streams, on_host;
  for (long round = 0; round < repeats; ++round) {
    in_streams.push_back(product.with_waits_in_streams());
    on_host.push_back(product.with_waits_on_the_host());
  }
  product.check(1 + 2 * static_cast<double>(repeats));
  return {{"value", median(in_streams)},
          {"peer", median(on_host)},
          {"unit", "s"},
          {"config", domain.str() + ": tile " + std::to_string(tile)}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::run); }
