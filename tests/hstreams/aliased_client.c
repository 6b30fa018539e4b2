/* Instances: aliased ones, private ones, incremental ones; adding and dropping them; copies between
   domains; memory types and policies. */
#include <hStreams_sink.h>
#include <hStreams_source.h>

#include "check.h"

enum { BYTES = 4096 };

static void* seen;

HSTREAMS_EXPORT void record(char* data) { seen = data; }

HSTREAMS_EXPORT void paint(uint64_t value, char* data) { memset(data, (int)value, BYTES); }

static HSTR_LOG_DOM host[2], card[2];

static HSTR_LOG_DOM add_domain(HSTR_PHYS_DOM where, int thread) {
  HSTR_CPU_MASK mask;
  HSTR_LOG_DOM domain;
  HSTR_OVERLAP_TYPE overlap;
  HSTR_CPU_MASK_ZERO(mask);
  HSTR_CPU_MASK_SET(thread, mask);
  OK(hStreams_AddLogDomain(where, mask, &domain, &overlap));
  CHECK(overlap == HSTR_NO_OVERLAP);
  OK(hStreams_StreamCreate(domain, domain, mask)); /* the number of the domain is as good as any */
  return domain;
}

static void* address_in(HSTR_LOG_DOM domain, char* data) {
  uint64_t args[1];
  args[0] = (uint64_t)data;
  OK(hStreams_EnqueueCompute(domain, "record", 0, 1, args, NULL, NULL, 0));
  OK(hStreams_StreamSynchronize(domain));
  return seen;
}

static void fill(HSTR_LOG_DOM domain, int value, char* data) {
  uint64_t args[2];
  args[0] = (uint64_t)value;
  args[1] = (uint64_t)data;
  OK(hStreams_EnqueueCompute(domain, "paint", 1, 1, args, NULL, NULL, 0));
}

static void private_instances(char* data) {
  HSTR_BUFFER_PROPS props;
  uint64_t count;
  HSTR_LOG_DOM domains[4];
  OK(hStreams_Alloc1D(data, BYTES));
  CHECK(address_in(host[0], data) != data);
  CHECK(address_in(host[0], data) != address_in(host[1], data));
  CHECK(address_in(card[0], data) != address_in(card[1], data));
  OK(hStreams_GetBufferProps(data + 9, &props));
  CHECK(props.mem_type == HSTR_MEM_TYPE_NORMAL && props.flags == HSTR_BUF_PROP_SRC_PINNED);
  OK(hStreams_GetBufferNumLogDomains(data, &count));
  OK(hStreams_GetBufferLogDomains(data, 4, domains, &count));
  CHECK(count == 4);
  fill(card[0], 3, data);
  OK(hStreams_EnqueueDataXDomain1D(card[0], data, data, BYTES, card[1], card[0], NULL));
  OK(hStreams_StreamSynchronize(card[0]));
  OK(hStreams_EnqueueData1D(card[1], data, data, BYTES, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_StreamSynchronize(card[1]));
  CHECK(data[0] == 3 && data[BYTES - 1] == 3);
  OK(hStreams_DeAlloc(data + 100));
}

/* A stream of the host moves data to a device and back, after and before its own actions. */
static void between_host_and_card(char* data) {
  OK(hStreams_Alloc1D(data, BYTES));
  fill(host[0], 8, data);
  OK(hStreams_EnqueueDataXDomain1D(host[0], data, data, BYTES, card[1], host[0], NULL));
  fill(host[0], 9, data);
  OK(hStreams_EnqueueDataXDomain1D(host[0], data, data, BYTES / 2, host[0], card[1], NULL));
  OK(hStreams_EnqueueData1D(host[0], data, data, BYTES, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_StreamSynchronize(host[0]));
  CHECK(data[0] == 8 && data[BYTES / 2 - 1] == 8 && data[BYTES / 2] == 9);
  OK(hStreams_DeAlloc(data));
}

static void aliased_instances(char* data) {
  HSTR_BUFFER_PROPS props = HSTR_BUFFER_PROPS_INITIAL_VALUES_EX;
  HSTR_EVENT event;
  props.flags = HSTR_BUF_PROP_ALIASED;
  OK(hStreams_Alloc1DEx(data, BYTES, &props, -1, NULL));
  CHECK(address_in(host[0], data) == data && address_in(host[1], data) == data);
  CHECK(address_in(card[0], data) == address_in(card[1], data));
  memset(data, 1, BYTES);
  OK(hStreams_EnqueueData1D(host[0], data, data, BYTES, HSTR_SRC_TO_SINK, NULL));
  fill(host[0], 2, data);
  OK(hStreams_EnqueueData1D(host[0], data, data, BYTES, HSTR_SINK_TO_SRC, &event));
  OK(hStreams_EventWait(1, &event, true, -1, NULL, NULL));
  CHECK(data[0] == 2 && data[BYTES - 1] == 2);
  OK(hStreams_EnqueueData1D(host[0], data + 100, data, 100, HSTR_SRC_TO_SINK, NULL));
  EXPECT(hStreams_EnqueueData1D(host[0], data + 50, data, 100, HSTR_SRC_TO_SINK, NULL),
         OVERLAPPING_RESOURCES);
  fill(card[0], 5, data);
  OK(hStreams_EnqueueDataXDomain1D(card[0], data, data, BYTES, card[1], card[0], &event));
  OK(hStreams_EventWait(1, &event, true, -1, NULL, NULL));
  OK(hStreams_EnqueueData1D(card[1], data, data, BYTES, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_ThreadSynchronize());
  CHECK(data[0] == 5);
  OK(hStreams_DeAlloc(data));
}

static void domains_come_and_go(char* data) {
  HSTR_BUFFER_PROPS props = HSTR_BUFFER_PROPS_INITIAL_VALUES;
  HSTR_LOG_DOM later;
  uint64_t count;
  props.flags |= HSTR_BUF_PROP_INCREMENTAL;
  OK(hStreams_Alloc1DEx(data, BYTES, &props, 1, card));
  OK(hStreams_AddBufferLogDomains(data, 1, host));
  later = add_domain(0, 40);
  OK(hStreams_GetBufferNumLogDomains(data, &count));
  CHECK(count == 3);
  CHECK(address_in(later, data) != NULL);
  OK(hStreams_RmBufferLogDomains(data, 1, host));
  EXPECT(hStreams_EnqueueData1D(host[0], data, data, 1, HSTR_SRC_TO_SINK, NULL), NOT_FOUND);
  OK(hStreams_RmLogDomains(1, &later));
  OK(hStreams_GetBufferNumLogDomains(data, &count));
  CHECK(count == 1);
  EXPECT(hStreams_StreamSynchronize(later), NOT_FOUND);
  OK(hStreams_RmBufferLogDomains(data, -1, NULL));
  EXPECT(hStreams_EnqueueData1D(card[0], data, data, 1, HSTR_SRC_TO_SINK, NULL), NOT_FOUND);
  OK(hStreams_DeAlloc(data));
}

static void memory_types(char* data) {
  HSTR_BUFFER_PROPS props = HSTR_BUFFER_PROPS_INITIAL_VALUES;
  props.mem_type = HSTR_MEM_TYPE_HBW;
  props.flags |= HSTR_BUF_PROP_AFFINITIZED;
  OK(hStreams_Alloc1DEx(data, BYTES, &props, -1, NULL));
  CHECK(address_in(host[0], data) != NULL && address_in(card[0], data) != NULL);
  OK(hStreams_DeAlloc(data));
  props.mem_type = HSTR_MEM_TYPE_ANY;
  OK(hStreams_Alloc1DEx(data, BYTES, &props, 0, NULL));
  OK(hStreams_DeAlloc(data));
}

/* Memory that is freed while it is a buffer comes back from the system for other buffers. */
static void reused_memory(void) {
  enum { LARGE = 8 << 20 };
  for (int i = 0; i < 5; ++i) {
    char* const large = (char*)malloc(LARGE);
    char* const small = (char*)malloc(100);
    void* volatile wrapped = large;
    OK(hStreams_Alloc1D(large, LARGE));
    free(large);
    OK(hStreams_Alloc1DEx(small, 100, NULL, -1, NULL));
    OK(hStreams_DeAlloc(small));
    OK(hStreams_DeAlloc(wrapped));
    free(small);
  }
}

int main(void) {
  char* const data = (char*)calloc(1, BYTES + 17);
  OK(hStreams_Init());
  card[0] = add_domain(0, 1);
  card[1] = add_domain(0, 2);
  host[0] = add_domain(HSTR_SRC_PHYS_DOMAIN, 2);
  host[1] = add_domain(HSTR_SRC_PHYS_DOMAIN, 3);
  hStreams_ClearLastError();
  private_instances(data + 17);
  between_host_and_card(data + 17);
  aliased_instances(data + 17);
  domains_come_and_go(data + 17);
  memory_types(data + 17);
  reused_memory();
  OK(hStreams_Fini());
  free(data);
  return 0;
}
