/* The memory that simulated cards say they have, by which programs size their buffers. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

static const uint64_t kMiB = 1 << 20;

HSTREAMS_EXPORT void last_byte(uint64_t bytes, unsigned char* data) { data[bytes - 1] += 1; }

static uint64_t memory_of(HSTR_PHYS_DOM domain) {
  uint32_t threads, mhz;
  HSTR_ISA_TYPE isa;
  uint64_t types, bytes[HSTR_MEM_TYPE_SIZE];
  OK(hStreams_GetPhysDomainDetails(domain, &threads, &isa, &mhz, NULL, NULL, &types, bytes));
  return bytes[HSTR_MEM_TYPE_NORMAL];
}

static uint32_t cards(void) {
  uint32_t count, active;
  bool alike;
  OK(hStreams_GetNumPhysDomains(&count, &active, &alike));
  return count;
}

static void by_default(void) {
  OK(hStreams_Init());
  const uint64_t card = memory_of(0), host = memory_of(HSTR_SRC_PHYS_DOMAIN);
  CHECK(card >= 8 * kMiB && card <= 8192 * kMiB);
  CHECK(card * (cards() + 1) <= host / 2);
  OK(hStreams_Fini());
}

static uint64_t first_card_of(const char* domains) {
  setenv("WEIR_DOMAINS", domains, 1);
  OK(hStreams_Init());
  const uint64_t bytes = memory_of(0);
  OK(hStreams_Fini());
  return bytes;
}

static void of_domains_that_are_named(void) {
  char* const cards_wanted = getenv("WEIR_SIM_CARDS");
  char kept[16] = "";
  if (cards_wanted != NULL) snprintf(kept, sizeof kept, "%s", cards_wanted);
  unsetenv("WEIR_SIM_CARDS");
  CHECK(first_card_of("sim:cores=1,gbps=8") <= 8192 * kMiB);
  CHECK(first_card_of("host,sim") <= 8192 * kMiB);
  CHECK(first_card_of("host,sim:memory=48MiB,cores=1") == 48 * kMiB);
  setenv("WEIR_HSTREAMS_MEMORY", "96M", 1);
  CHECK(first_card_of("host,sim:cores=1,memory=32MiB") == 32 * kMiB);
  CHECK(first_card_of("host,sim:cores=1") == 96 * kMiB);
  unsetenv("WEIR_DOMAINS");
  if (cards_wanted != NULL) setenv("WEIR_SIM_CARDS", kept, 1);
}

/* A program that takes 60 % of what there is, and mirrors it. */
static void a_program_that_fills_a_card(void) {
  setenv("WEIR_HSTREAMS_MEMORY", "64MiB", 1);
  OK(hStreams_app_init(1, 1));
  CHECK(memory_of(0) == 64 * kMiB);
  const uint64_t bytes = memory_of(0) * 6 / 10;
  unsigned char* const data = (unsigned char*)calloc(1, bytes);
  uint64_t args[2];
  args[0] = bytes;
  args[1] = (uint64_t)data;
  OK(hStreams_app_create_buf(data, bytes));
  OK(hStreams_app_xfer_memory(0, data, data, bytes, HSTR_SRC_TO_SINK, NULL));
  OK(hStreams_app_invoke(0, "last_byte", 1, 1, args, NULL, NULL, 0));
  OK(hStreams_app_xfer_memory(0, data, data, bytes, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_thread_sync());
  CHECK(data[bytes - 1] == 1);
  OK(hStreams_DeAlloc(data));
  EXPECT(hStreams_app_create_buf(data, 65 * kMiB), OUT_OF_MEMORY);
  OK(hStreams_app_fini());
  free(data);
}

static void refused(const char* value) {
  setenv("WEIR_HSTREAMS_MEMORY", value, 1);
  EXPECT(hStreams_Init(), OUT_OF_RANGE);
}

int main(void) {
  by_default();
  of_domains_that_are_named();
  a_program_that_fills_a_card();
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  refused("0");
  refused("1000");
  refused("much");
  refused("-1G");
  refused("8G,speed=0.5");
  return 0;
}
