#include <complex>
#include <cstring>
#include <vector>

#include <hstreams/hStreams_app_api.h>

#include "hstreams/call.hpp"

using namespace weir::hs;

namespace {

constexpr HSTR_INFO_TYPE kKind = HSTR_INFO_TYPE_MISC;

uint64_t word_of(const void* address) { return reinterpret_cast<uint64_t>(address); }

/// Begins a session for a call of the app interface, which ends it again when that fails.
class Beginning {
 public:
  explicit Beginning(const char* version) : began_(!Library::get().initialized()) {
    Library::get().init(version);
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;
  ~Beginning() {
    if (began_) Library::get().fini_if_open();
  }
  void keep() noexcept { began_ = false; }

 private:
  bool began_;
};

/// In a call of Library::with_session().
void init_domains(uint32_t count, const uint32_t* places, uint32_t oversubscription) {
  check_pointers(places);
  if (count == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "no logical domain is wanted");
  if (oversubscription == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "no stream is wanted in a place");
  Library::get().app().create({places, count}, oversubscription);
}

/// Enqueues a built-in sink function with a matrix product's scalars, each in as many words as it
/// needs, then its matrices.
template <class... Scalars>
HSTR_RESULT enqueue_gemm(const Call& call, HSTR_LOG_STR stream, const char* name, const void* a,
                         const void* b, void* c, HSTR_EVENT* event, const Scalars&... scalars) {
  const HSTR_RESULT refused = call.run([&] { check_pointers(a, b, c); });
  if (refused != HSTR_RESULT_SUCCESS) return refused;
  uint64_t arguments[16] = {};  // no allocation: nothing catches an exception here
  uint32_t count = 0;
  const auto add = [&]<class Scalar>(const Scalar& scalar) {
    std::memcpy(&arguments[count], &scalar, sizeof scalar);
    count += (sizeof scalar + 7) / 8;
  };
  (add(scalars), ...);
  const uint32_t scalar_words = count;
  add(a), add(b), add(c);
  return hStreams_EnqueueCompute(stream, name, scalar_words, 3, arguments, event, nullptr, 0);
}

}  // namespace

extern "C" {

HSTR_RESULT hStreams_app_init_in_version(uint32_t streams, uint32_t oversubscription,
                                         const char* version) {
  return Call(kKind, __func__, streams, oversubscription, version).run([&] {
    Beginning beginning(version);
    if (streams == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "no stream is wanted in a domain");
    Library::get().with_session([&](Session& session) {
      const std::vector<uint32_t> places(session.physical().devices().size(), streams);
      init_domains(static_cast<uint32_t>(places.size()), places.data(), oversubscription);
    });
    beginning.keep();
  });
}

HSTR_RESULT hStreams_app_init_domains_in_version(uint32_t domains, uint32_t* places,
                                                 uint32_t oversubscription, const char* version) {
  return Call(kKind, __func__, domains, places, oversubscription, version).run([&] {
    Beginning beginning(version);
    Library::get().with_session([&](Session&) { init_domains(domains, places, oversubscription); });
    beginning.keep();
  });
}

HSTR_RESULT hStreams_app_fini(void) { return hStreams_Fini(); }

HSTR_RESULT hStreams_app_create_buf(void* base, const uint64_t bytes) {
  return hStreams_Alloc1D(base, bytes);
}

HSTR_RESULT hStreams_app_xfer_memory(HSTR_LOG_STR stream, void* write, void* read, uint64_t bytes,
                                     HSTR_XFER_DIRECTION direction, HSTR_EVENT* event) {
  return hStreams_EnqueueData1D(stream, write, read, bytes, direction, event);
}

HSTR_RESULT hStreams_app_invoke(HSTR_LOG_STR stream, const char* name, uint32_t scalars,
                                uint32_t addresses, uint64_t* arguments, HSTR_EVENT* event,
                                void* result, uint16_t result_bytes) {
  return hStreams_EnqueueCompute(stream, name, scalars, addresses, arguments, event, result,
                                 result_bytes);
}

HSTR_RESULT hStreams_app_stream_sync(HSTR_LOG_STR stream) {
  return hStreams_StreamSynchronize(stream);
}

HSTR_RESULT hStreams_app_thread_sync(void) { return hStreams_ThreadSynchronize(); }

HSTR_RESULT hStreams_app_event_wait(uint32_t count, HSTR_EVENT* events) {
  const int timeout = Library::get().configuration().options().time_out_ms_val;
  return hStreams_EventWait(count, events, true, timeout, nullptr, nullptr);
}

HSTR_RESULT hStreams_app_event_wait_in_stream(HSTR_LOG_STR stream, uint32_t count,
                                              HSTR_EVENT* events, int32_t addresses,
                                              void** address_list, HSTR_EVENT* event) {
  return hStreams_EventStreamWait(stream, count, events, addresses, address_list, event);
}

HSTR_RESULT hStreams_app_memset(HSTR_LOG_STR stream, void* write, int value, uint64_t bytes,
                                HSTR_EVENT* event) {
  const HSTR_RESULT refused =
      Call(kKind, __func__, stream, write, value, bytes, event).run([&] { check_pointers(write); });
  if (refused != HSTR_RESULT_SUCCESS) return refused;
  uint64_t arguments[] = {bytes, static_cast<uint64_t>(value), word_of(write)};
  return hStreams_EnqueueCompute(stream, "hStreams_memset_sink", 2, 1, arguments, event, nullptr,
                                 0);
}

HSTR_RESULT hStreams_app_memcpy(HSTR_LOG_STR stream, void* read, void* write, uint64_t bytes,
                                HSTR_EVENT* event) {
  const HSTR_RESULT refused = Call(kKind, __func__, stream, read, write, bytes, event).run([&] {
    check_pointers(read, write);
  });
  if (refused != HSTR_RESULT_SUCCESS) return refused;
  uint64_t arguments[] = {bytes, word_of(read), word_of(write)};
  return hStreams_EnqueueCompute(stream, "hStreams_memcpy_sink", 1, 2, arguments, event, nullptr,
                                 0);
}

HSTR_RESULT hStreams_app_sgemm(HSTR_LOG_STR stream, const CBLAS_ORDER order,
                               const CBLAS_TRANSPOSE trans_a, const CBLAS_TRANSPOSE trans_b,
                               const int64_t m, const int64_t n, const int64_t k, const float alpha,
                               const float* a, const int64_t ld_a, const float* b,
                               const int64_t ld_b, const float beta, float* c, const int64_t ld_c,
                               HSTR_EVENT* event) {
  return enqueue_gemm(Call(kKind, __func__, stream, m, n, k), stream, "hStreams_sgemm_sink", a, b,
                      c, event, order, trans_a, trans_b, m, n, k, alpha, ld_a, ld_b, beta, ld_c);
}

HSTR_RESULT hStreams_app_dgemm(HSTR_LOG_STR stream, const CBLAS_ORDER order,
                               const CBLAS_TRANSPOSE trans_a, const CBLAS_TRANSPOSE trans_b,
                               const int64_t m, const int64_t n, const int64_t k,
                               const double alpha, const double* a, const int64_t ld_a,
                               const double* b, const int64_t ld_b, const double beta, double* c,
                               const int64_t ld_c, HSTR_EVENT* event) {
  return enqueue_gemm(Call(kKind, __func__, stream, m, n, k), stream, "hStreams_dgemm_sink", a, b,
                      c, event, order, trans_a, trans_b, m, n, k, alpha, ld_a, ld_b, beta, ld_c);
}

HSTR_RESULT hStreams_app_cgemm(HSTR_LOG_STR stream, const CBLAS_ORDER order,
                               const CBLAS_TRANSPOSE trans_a, const CBLAS_TRANSPOSE trans_b,
                               const int64_t m, const int64_t n, const int64_t k, const void* alpha,
                               const void* a, const int64_t ld_a, const void* b, const int64_t ld_b,
                               const void* beta, void* c, const int64_t ld_c, HSTR_EVENT* event) {
  const Call call(kKind, __func__, stream, m, n, k);
  const HSTR_RESULT refused = call.run([&] { check_pointers(alpha, beta); });
  if (refused != HSTR_RESULT_SUCCESS) return refused;
  using Number = std::complex<float>;
  return enqueue_gemm(call, stream, "hStreams_cgemm_sink", a, b, c, event, order, trans_a, trans_b,
                      m, n, k, *static_cast<const Number*>(alpha), ld_a, ld_b,
                      *static_cast<const Number*>(beta), ld_c);
}

HSTR_RESULT hStreams_app_zgemm(HSTR_LOG_STR stream, const CBLAS_ORDER order,
                               const CBLAS_TRANSPOSE trans_a, const CBLAS_TRANSPOSE trans_b,
                               const int64_t m, const int64_t n, const int64_t k, const void* alpha,
                               const void* a, const int64_t ld_a, const void* b, const int64_t ld_b,
                               const void* beta, void* c, const int64_t ld_c, HSTR_EVENT* event) {
  const Call call(kKind, __func__, stream, m, n, k);
  const HSTR_RESULT refused = call.run([&] { check_pointers(alpha, beta); });
  if (refused != HSTR_RESULT_SUCCESS) return refused;
  using Number = std::complex<double>;
  return enqueue_gemm(call, stream, "hStreams_zgemm_sink", a, b, c, event, order, trans_a, trans_b,
                      m, n, k, *static_cast<const Number*>(alpha), ld_a, ld_b,
                      *static_cast<const Number*>(beta), ld_c);
}
}
