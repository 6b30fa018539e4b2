/* Masks, logical domains, and the streams that the app API makes of a device with 12 threads. */
#include <hStreams_app_api.h>

#include "check.h"

static void mask_functions(void) {
  HSTR_CPU_MASK a, b, c;
  cpu_set_t set;
  HSTR_CPU_MASK_ZERO(a);
  HSTR_CPU_MASK_ZERO(b);
  HSTR_CPU_MASK_SET(0, a);
  HSTR_CPU_MASK_SET(1023, a);
  HSTR_CPU_MASK_SET(1024, a);
  HSTR_CPU_MASK_SET(-1, a);
  HSTR_CPU_MASK_SET(1023, b);
  CHECK(HSTR_CPU_MASK_COUNT(a) == 2);
  CHECK(HSTR_CPU_MASK_ISSET(1023, a) != 0 && HSTR_CPU_MASK_ISSET(5, a) == 0);
  CHECK(HSTR_CPU_MASK_ISSET(1024, a) == 0 && HSTR_CPU_MASK_ISSET(-1, a) == 0);
  HSTR_CPU_MASK_AND(c, a, b);
  CHECK(HSTR_CPU_MASK_EQUAL(c, b) == 1 && HSTR_CPU_MASK_EQUAL(c, a) == 0);
  HSTR_CPU_MASK_XOR(c, a, b);
  CHECK(HSTR_CPU_MASK_COUNT(c) == 1 && HSTR_CPU_MASK_ISSET(0, c));
  HSTR_CPU_MASK_OR(c, c, b);
  CHECK(HSTR_CPU_MASK_EQUAL(c, a));
  HSTR_CPU_MASK_XLATE_EX(&set, a);
  HSTR_CPU_MASK_XLATE(c, &set);
  CHECK(HSTR_CPU_MASK_EQUAL(c, a));
}

static uint64_t mask_of(HSTR_LOG_STR stream) {
  HSTR_CPU_MASK mask;
  OK(hStreams_GetLogStreamDetails(stream, 0, mask));
  for (int i = 1; i < 16; ++i) CHECK(mask[i] == 0);
  return mask[0];
}

static void physical_domains(uint32_t* cards) {
  uint32_t active, threads, mhz;
  bool alike = false;
  HSTR_ISA_TYPE isa;
  HSTR_CPU_MASK max, avoid;
  uint64_t types, bytes[HSTR_MEM_TYPE_SIZE];
  OK(hStreams_GetNumPhysDomains(cards, &active, &alike));
  CHECK(*cards >= 1 && active == *cards && alike);
  OK(hStreams_GetPhysDomainDetails(0, &threads, &isa, &mhz, max, avoid, &types, bytes));
  CHECK(threads == 12 && isa == HSTR_ISA_KNC && types == 1 && bytes[0] > 0 && bytes[1] == 0);
  CHECK(max[0] == 0xfff && avoid[0] == 0xe01);
  OK(hStreams_GetPhysDomainDetails(-1, &threads, &isa, &mhz, NULL, NULL, &types, bytes));
  CHECK(threads == 20 && isa == HSTR_ISA_x86_64);
}

static void equal_domains(uint32_t cards) {
  uint32_t count, levels[12];
  HSTR_LOG_STR ids[4];
  HSTR_CPU_MASK free_threads;
  OK(hStreams_app_init(2, 2));
  for (uint32_t card = 0; card < cards; ++card) {
    CHECK(mask_of(2 * card) == 0x1e && mask_of(2 * (card + cards)) == 0x1e);
    CHECK(mask_of(2 * card + 1) == 0x1e0 && mask_of(2 * (card + cards) + 1) == 0x1e0);
  }
  OK(hStreams_GetNumLogStreams(1, &count));
  CHECK(count == 4);
  OK(hStreams_GetLogStreamIDList(1, 4, ids));
  CHECK(ids[0] == 0 && ids[1] == 1 && ids[2] == 2 * cards);
  OK(hStreams_GetAvailable(0, free_threads));
  CHECK(free_threads[0] == 0xe01);
  OK(hStreams_GetOversubscriptionLevel(0, 12, levels)); /* streams with one mask are one queue */
  CHECK(levels[0] == 0 && levels[1] == 1 && levels[8] == 1 && levels[9] == 0);
  OK(hStreams_app_init(1, 1));
  CHECK(mask_of(4 * cards) == 0x1fe);
  OK(hStreams_GetOversubscriptionLevel(0, 12, levels));
  CHECK(levels[1] == 2);
}

static void unequal_domains(uint32_t cards) {
  uint32_t places[3] = {1, 2, 1};
  OK(hStreams_app_init_domains(3, places, 2));
  if (cards == 1) {
    CHECK(mask_of(0) == 0x6 && mask_of(4) == 0x6);
    CHECK(mask_of(1) == 0x8 && mask_of(5) == 0x8 && mask_of(2) == 0x10 && mask_of(6) == 0x10);
    CHECK(mask_of(3) == 0x1e0 && mask_of(7) == 0x1e0);
  } else { /* two domains on the first device, one on the second */
    CHECK(mask_of(0) == 0x1e && mask_of(1) == 0x60 && mask_of(2) == 0x180 && mask_of(3) == 0x1fe);
  }
  EXPECT(hStreams_app_init_domains(2, places, 1), INCONSISTENT_ARGS);
}

static void own_domains(void) {
  HSTR_CPU_MASK mask, got;
  HSTR_LOG_DOM ids[3];
  HSTR_OVERLAP_TYPE overlap;
  HSTR_PHYS_DOM physical;
  uint32_t count;
  HSTR_CPU_MASK_ZERO(mask);
  HSTR_CPU_MASK_SET(3, mask);
  HSTR_CPU_MASK_SET(4, mask);
  OK(hStreams_AddLogDomain(0, mask, &ids[0], &overlap));
  CHECK(ids[0] == 1 && overlap == HSTR_NO_OVERLAP);
  OK(hStreams_AddLogDomain(0, mask, &ids[1], &overlap));
  CHECK(ids[1] == 2 && overlap == HSTR_EXACT_OVERLAP);
  HSTR_CPU_MASK_SET(5, mask);
  EXPECT(hStreams_AddLogDomain(0, mask, &ids[2], &overlap), OVERLAPPING_RESOURCES);
  CHECK(overlap == HSTR_PARTIAL_OVERLAP);
  OK(hStreams_AddLogDomain(HSTR_SRC_PHYS_DOMAIN, mask, &ids[2], &overlap));
  CHECK(ids[2] == 3 && overlap == HSTR_NO_OVERLAP);
  OK(hStreams_GetLogDomainDetails(3, &physical, got));
  CHECK(physical == HSTR_SRC_PHYS_DOMAIN && HSTR_CPU_MASK_EQUAL(got, mask));
  OK(hStreams_GetLogDomainDetails(0, &physical, got));
  CHECK(physical == HSTR_SRC_PHYS_DOMAIN && HSTR_CPU_MASK_COUNT(got) == 0);
  OK(hStreams_GetNumLogDomains(HSTR_SRC_PHYS_DOMAIN, &count));
  CHECK(count == 1);
  OK(hStreams_RmLogDomains(1, ids));
  OK(hStreams_GetLogDomainIDList(0, 1, ids));
  CHECK(ids[0] == 2);
}

/* Programs ask for more streams than small machines have cores. */
static void very_many_streams(void) {
  char data[8] = {0};
  OK(hStreams_app_init(56, 1));
  OK(hStreams_app_create_buf(data, sizeof data));
  for (HSTR_LOG_STR stream = 0; stream < 56; ++stream) {
    OK(hStreams_app_memset(stream, data, 3, sizeof data, NULL));
  }
  OK(hStreams_app_thread_sync());
}

int main(void) {
  uint32_t cards;
  mask_functions();
  setenv("WEIR_HSTREAMS_THREADS", "12", 1);
  setenv("WEIR_HSTREAMS_HOST_CPUS", "20", 1);
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  OK(hStreams_Init());
  physical_domains(&cards);
  equal_domains(cards);
  OK(hStreams_Fini());
  OK(hStreams_Init());
  unequal_domains(cards);
  OK(hStreams_Fini());
  OK(hStreams_Init());
  own_domains();
  OK(hStreams_Fini());
  unsetenv("WEIR_HSTREAMS_THREADS");
  very_many_streams();
  OK(hStreams_Fini());
  return 0;
}
