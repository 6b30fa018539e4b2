/* Buffers and regions that cannot be. */
#include "fixture.h"

static fixture f;

static double memory[32];

static weir_status wrap(void* address, size_t bytes, const char* name, size_t alignment,
                        weir_buffer** out_buffer) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.name = name;
  options.alignment = alignment;
  return weir_buffer_wrap(f.runtime, address, bytes, &options, out_buffer);
}

static void misaligned_memory(void) {
  weir_buffer* buffer = NULL;
  CHECK_REFUSED(wrap((char*)memory + 4, 64, "crooked", 0, &buffer), "crooked");
  CHECK_REFUSED(wrap((char*)memory + 4, 64, "crooked", 0, &buffer), "multiple of 8");
  CHECK_OK(wrap((char*)memory + 4, 64, "floats", 4, &buffer));
  weir_buffer_destroy(buffer);
  CHECK_REFUSED(wrap(memory, 64, "odd", 24, &buffer), "alignment 24");
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.alignment = 3;
  CHECK_REFUSED(weir_buffer_create(f.runtime, 64, &options, &buffer), "alignment 3");
}

static void overlapping_memory(void) {
  weir_buffer* first = NULL;
  weir_buffer* second = NULL;
  CHECK_OK(wrap(memory + 8, 64, "first", 0, &first));
  CHECK_REFUSED(wrap(memory + 8, 64, "same", 0, &second), "'first'");
  CHECK_REFUSED(wrap(memory + 8, 64, "same", 0, &second), "'same'");
  CHECK_REFUSED(wrap(memory + 4, 40, "below", 0, &second), "'first'");
  CHECK_REFUSED(wrap(memory + 15, 16, "above", 0, &second), "'first'");
  CHECK_REFUSED(wrap(memory, 256, "around", 0, &second), "'first'");
  CHECK_REFUSED(wrap(memory + 10, 8, "inside", 0, &second), "'first'");
  CHECK(second == NULL);
  CHECK_OK(wrap(memory, 64, "before", 0, &second));
  weir_buffer_destroy(second);
  CHECK_OK(wrap(memory + 16, 64, "after", 0, &second));
  weir_buffer_destroy(second);
  weir_buffer_destroy(first);
  CHECK_OK(wrap(memory, 256, "alone", 0, &first));
  weir_buffer_destroy(first);
}

static void impossible_sizes(void) {
  weir_buffer* buffer = NULL;
  CHECK_REFUSED(weir_buffer_create(f.runtime, 0, NULL, &buffer), "0 bytes");
  CHECK_REFUSED(wrap(memory, 0, "empty", 0, &buffer), "0 bytes");
  CHECK_FAILS(weir_buffer_create(f.runtime, SIZE_MAX / 2, NULL, &buffer), WEIR_STATUS_OUT_OF_MEMORY,
              NULL);
  CHECK_FAILS(weir_buffer_create(f.runtime, SIZE_MAX, NULL, &buffer), WEIR_STATUS_OUT_OF_MEMORY,
              NULL);
  CHECK(buffer == NULL);
}

/* Memory whose end is beyond the end of the address space. */
static void memory_beyond_the_end(void) {
  weir_buffer* buffer = NULL;
  CHECK_REFUSED(wrap(memory, SIZE_MAX - 64, "endless", 0, &buffer), "endless");
  CHECK(buffer == NULL);
}

static weir_status enqueue_region(weir_region region) {
  const weir_operand operand = {f.x, region, WEIR_ACCESS_READ_WRITE};
  const weir_scalar scalar = weir_scalar_f64(1);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = "add";
  compute.operands = &operand;
  compute.operand_count = 1;
  compute.scalars = &scalar;
  compute.scalar_count = 1;
  return weir_stream_compute(f.stream, &compute, NULL);
}

static void regions_outside_their_buffer(void) {
  const size_t n = FIXTURE_BYTES;
  const weir_region outside[] = {
      {0, {n + 1, 1, 1}, {0, 0}},
      {n, {1, 1, 1}, {0, 0}},
      {n + 1, {1, 1, 1}, {0, 0}},
      {8, {n, 1, 1}, {0, 0}},
      {SIZE_MAX, {8, 1, 1}, {0, 0}},
      {8, {SIZE_MAX, 1, 1}, {0, 0}},
      {0, {8, n / 8 + 1, 1}, {8, 0}},
      {0, {8, 2, 1}, {n, 0}},
      {8, {8, n / 8, 1}, {8, 0}},
      {0, {8, 4, 3}, {64, n / 2}},
      {0, {8, 4, 2}, {SIZE_MAX / 2, SIZE_MAX}},
      {0, {8, 3, 1}, {SIZE_MAX / 2, 0}},
      {SIZE_MAX - 8, {8, 2, 1}, {16, 0}},
  };
  for (size_t i = 0; i < sizeof outside / sizeof *outside; ++i) {
    CHECK_REFUSED(enqueue_region(outside[i]), "vector");
    CHECK_CONTAINS(weir_last_error(), "512");
    CHECK_REFUSED(weir_stream_upload(f.stream, f.x, outside[i], NULL), "vector");
    CHECK_REFUSED(weir_stream_download(f.stream, f.x, outside[i], NULL), "vector");
  }
}

static void malformed_regions(void) {
  const weir_region empty = {0, {0, 1, 1}, {0, 0}};
  const weir_region overlapping_rows = {0, {16, 2, 1}, {8, 0}};
  const weir_region overlapping_planes = {0, {8, 4, 2}, {16, 32}};
  const weir_region endless = {0, {1, SIZE_MAX, 1}, {1, 0}};
  CHECK_REFUSED(enqueue_region(empty), "vector");
  CHECK_REFUSED(enqueue_region(overlapping_rows), "vector");
  CHECK_REFUSED(enqueue_region(overlapping_planes), "vector");
  CHECK_REFUSED(enqueue_region(endless), "vector");
}

static void regions_that_just_fit(void) {
  const size_t n = FIXTURE_BYTES;
  const weir_region fitting[] = {
      {0, {n, 0, 0}, {0, 0}},       {n - 8, {8, 1, 1}, {0, 0}},  {0, {8, n / 8, 1}, {8, 0}},
      {8, {8, n / 16, 1}, {16, 0}}, {0, {8, 4, 2}, {16, n / 2}},
  };
  for (size_t i = 0; i < sizeof fitting / sizeof *fitting; ++i) {
    CHECK_OK(enqueue_region(fitting[i]));
  }
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void wrong_access(void) {
  const weir_operand operand = {f.x, weir_region_range(0, 8), (weir_access)0};
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = "fail";
  compute.operands = &operand;
  compute.operand_count = 1;
  CHECK_REFUSED(weir_stream_compute(f.stream, &compute, NULL), "vector");
}

static weir_transfer between(weir_buffer* source, weir_region from, weir_buffer* target,
                             weir_region to) {
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source.buffer = source;
  transfer.source.region = from;
  transfer.target.buffer = target;
  transfer.target.region = to;
  return transfer;
}

static void impossible_transfers(void) {
  const weir_region low = weir_region_range(0, 64);
  const weir_region high = weir_region_range(32, 64);
  weir_transfer transfer = between(f.x, low, f.y, weir_region_range(0, 32));
  CHECK_REFUSED(weir_stream_transfer(f.stream, &transfer, NULL), "vector");
  CHECK_CONTAINS(weir_last_error(), "result");
  transfer = between(f.x, low, f.x, high);
  CHECK_REFUSED(weir_stream_transfer(f.stream, &transfer, NULL), "vector");
  transfer = between(f.x, low, f.y, weir_region_range(FIXTURE_BYTES - 8, 64));
  CHECK_REFUSED(weir_stream_transfer(f.stream, &transfer, NULL), "result");
  transfer = between(NULL, low, f.y, low);
  CHECK_REFUSED(weir_stream_transfer(f.stream, &transfer, NULL), "buffer");
}

static void addresses_without_buffer(void) {
  weir_buffer* found = NULL;
  size_t offset = 0;
  CHECK_FAILS(weir_buffer_find(f.runtime, memory, &found, NULL), WEIR_STATUS_NOT_FOUND, "0x");
  CHECK_FAILS(weir_buffer_find(f.runtime, f.x_data + FIXTURE_DOUBLES, &found, NULL),
              WEIR_STATUS_NOT_FOUND, "0x");
  CHECK_FAILS(weir_buffer_find(f.runtime, NULL, &found, NULL), WEIR_STATUS_NOT_FOUND, "no buffer");
  CHECK_OK(weir_buffer_find(f.runtime, (char*)f.x_data + 13, &found, &offset));
  CHECK(found == f.x && offset == 13);
}

static double at_both(const double* there, const weir_buffer* buffer) {
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  CHECK_OK(weir_buffer_get_info(buffer, &info));
  return 1000 * *there + *(const double*)info.address;
}

/* Memory of a simulated device is memory of the host. */
static void adopted_memory(void) {
  static double there[16], here[16], elsewhere[16];
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_runtime* runtime = NULL;
  weir_buffer *x = NULL, *y = NULL;
  options.domains = "sim:cores=1,memory=64,host:cores=1,null";
  require(weir_runtime_create(&options, &runtime));
  weir_domain* const card = weir_runtime_get_domain(runtime, 0);
  weir_domain* const host = weir_runtime_get_domain(runtime, 1);
  weir_domain* const none = weir_runtime_get_domain(runtime, 2);
  CHECK_REFUSED(weir_buffer_adopt(NULL, there, NULL, 8, NULL, &x), "domain");
  CHECK_REFUSED(weir_buffer_adopt(card, there, NULL, 8, NULL, NULL), "out_buffer");
  CHECK_REFUSED(weir_buffer_adopt(card, NULL, NULL, 8, NULL, &x), "NULL");
  CHECK_REFUSED(weir_buffer_adopt(card, there, NULL, 0, NULL, &x), "0 bytes");
  CHECK_REFUSED(weir_buffer_adopt(card, there, NULL, SIZE_MAX, NULL, &x), "beyond the end");
  CHECK_FAILS(weir_buffer_adopt(none, there, NULL, 8, NULL, &x), WEIR_STATUS_UNSUPPORTED, "null");
  CHECK_REFUSED(weir_buffer_adopt(host, there, here, 8, NULL, &x), "no_alias");
  CHECK(x == NULL);
  CHECK_OK(weir_buffer_adopt(host, there, NULL, sizeof there, NULL, &x));
  there[0] = 3;
  CHECK(at_both(there, x) == 3003);
  weir_buffer_destroy(x);

  weir_place* place = NULL;
  weir_stream* stream = NULL;
  require(weir_place_create(card, NULL, &place));
  require(weir_stream_create(place, NULL, &stream));
  CHECK_OK(weir_buffer_adopt(card, there, here, sizeof there, NULL, &x)); /* more than it has */
  CHECK_REFUSED(weir_buffer_adopt(card, there + 15, elsewhere, 16, NULL, &y), "overlaps");
  CHECK_REFUSED(weir_buffer_adopt(card, elsewhere, here + 15, 16, NULL, &y), "overlaps");
  CHECK_OK(weir_buffer_adopt(card, elsewhere, there, 16, NULL, &y)); /* here it is of the host */
  weir_buffer_destroy(y);
  CHECK(at_both(there, x) == 3000);
  CHECK_OK(weir_stream_download(stream, x, weir_region_range(0, 8), NULL));
  CHECK_OK(weir_stream_synchronize(stream, SOON));
  CHECK(at_both(there, x) == 3003 && here[0] == 3);
  here[0] = 4;
  CHECK_OK(weir_stream_upload(stream, x, weir_region_range(0, 8), NULL));
  CHECK_OK(weir_stream_synchronize(stream, SOON));
  CHECK(at_both(there, x) == 4004);
  weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
  CHECK_OK(weir_domain_get_info(card, &info));
  CHECK(info.memory_used == 0);
  weir_runtime_destroy(runtime); /* with the buffer */
  CHECK(there[0] == 4);
}

int main(void) {
  set_up(&f);
  RUN(misaligned_memory);
  RUN(overlapping_memory);
  RUN(impossible_sizes);
  const uint64_t before = enqueued(&f);
  RUN(regions_outside_their_buffer);
  RUN(malformed_regions);
  RUN(wrong_access);
  RUN(impossible_transfers);
  CHECK(enqueued(&f) == before);
  RUN(regions_that_just_fit);
  RUN(addresses_without_buffer);
  RUN(memory_beyond_the_end);
  RUN(adopted_memory);
  tear_down(&f);
  return check_failures != 0;
}
