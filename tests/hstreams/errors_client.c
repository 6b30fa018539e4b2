/* Every row of the contract's table of errors, with the input that causes each. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

static char data[4096], other[256];
static HSTR_CPU_MASK empty, one, two, far_away;
static uint32_t count, number[HSTR_MISC_DATA_SIZE];
static bool flag;
static HSTR_LOG_DOM domain, domains[8];
static HSTR_OVERLAP_TYPE overlap;
static HSTR_LOG_STR streams[8];
static HSTR_EVENT event;
static uint64_t args[8], big;

HSTREAMS_EXPORT void nothing(void) {}

static void set(HSTR_CPU_MASK mask, int first, int bits) {
  HSTR_CPU_MASK_ZERO(mask);
  for (int bit = first; bit < first + bits; ++bit) HSTR_CPU_MASK_SET(bit, mask);
}

static void not_initialized(void) {
  HSTR_BUFFER_PROPS props;
  EXPECT(hStreams_IsInitialized(), NOT_INITIALIZED);
  CHECK(hStreams_GetLastError() == HSTR_RESULT_NOT_INITIALIZED);
  EXPECT(hStreams_Fini(), NOT_INITIALIZED);
  EXPECT(hStreams_GetNumPhysDomains(NULL, NULL, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetPhysDomainDetails(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
         NOT_INITIALIZED);
  EXPECT(hStreams_GetAvailable(0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_AddLogDomain(0, NULL, NULL, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_RmLogDomains(0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetNumLogDomains(0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetLogDomainIDList(0, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetLogDomainDetails(0, NULL, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_StreamCreate(0, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_StreamDestroy(0), NOT_INITIALIZED);
  EXPECT(hStreams_GetNumLogStreams(0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetLogStreamIDList(0, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetLogStreamDetails(0, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetOversubscriptionLevel(0, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_EnqueueCompute(0, NULL, 0, 0, NULL, NULL, NULL, 0), NOT_INITIALIZED);
  EXPECT(hStreams_EnqueueData1D(0, NULL, NULL, 0, 9, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_EnqueueDataXDomain1D(0, NULL, NULL, 0, 0, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_StreamSynchronize(0), NOT_INITIALIZED);
  EXPECT(hStreams_ThreadSynchronize(), NOT_INITIALIZED);
  EXPECT(hStreams_EventWait(0, NULL, true, 0, NULL, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_EventStreamWait(0, 1, NULL, 1, NULL, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_Alloc1D(NULL, 0), NOT_INITIALIZED);
  EXPECT(hStreams_Alloc1DEx(NULL, 0, NULL, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_AddBufferLogDomains(NULL, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_RmBufferLogDomains(NULL, 0, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_DeAlloc(NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetBufferNumLogDomains(NULL, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetBufferLogDomains(NULL, 0, NULL, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_GetBufferProps(NULL, &props), NOT_INITIALIZED);
  EXPECT(hStreams_app_memset(0, NULL, 0, 1, NULL), NULL_PTR);
  EXPECT(hStreams_app_memset(0, data, 0, 1, NULL), NOT_INITIALIZED);
  EXPECT(hStreams_app_memcpy(0, NULL, data, 1, NULL), NULL_PTR);
  EXPECT(hStreams_app_memcpy(0, data, other, 1, NULL), NOT_INITIALIZED);
#define GEMM(letter, one, a, b, c)                                                                 \
  hStreams_app_##letter##gemm(0, CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, one, a, 1, b, \
                              1, one, c, 1, NULL)
  float s[2] = {0};
  double d[2] = {0};
  EXPECT(GEMM(s, 1, NULL, s, s), NULL_PTR);
  EXPECT(GEMM(d, 1, d, NULL, d), NULL_PTR);
  EXPECT(GEMM(c, s, s, s, NULL), NULL_PTR);
  EXPECT(GEMM(z, NULL, d, d, d), NULL_PTR);
  EXPECT(GEMM(s, 1, s, s, s), NOT_INITIALIZED);
  EXPECT(GEMM(d, 1, d, d, d), NOT_INITIALIZED);
  EXPECT(GEMM(c, s, s, s, s), NOT_INITIALIZED);
  EXPECT(GEMM(z, d, d, d, d), NOT_INITIALIZED);
}

static void version(void) {
  char text[8];
  OK(hStreams_GetVersionStringLen(&count));
  CHECK(count == 4);
  OK(hStreams_Version(text, sizeof text));
  CHECK(strcmp(text, "1.3") == 0);
  EXPECT(hStreams_GetVersionStringLen(NULL), NULL_PTR);
  EXPECT(hStreams_Version(NULL, 8), NULL_PTR);
  EXPECT(hStreams_Version(text, 3), BUFF_TOO_SMALL);
  CHECK(strcmp(hStreams_ResultGetName(HSTR_RESULT_BUFF_TOO_SMALL), "HSTR_RESULT_BUFF_TOO_SMALL") ==
        0);
  CHECK(hStreams_ResultGetName(24)[0] == '[' && hStreams_ResultGetName(-1)[0] == '[');
}

static void options(void) {
  HSTR_OPTIONS good, bad;
  char name[] = "x.so";
  char *names[1] = {name}, *no_names[1] = {NULL};
  OK(hStreams_GetCurrentOptions(&good, sizeof good));
  CHECK(sizeof good == 80 && good.phys_domains_limit == 32 && good.dep_policy == 1);
  EXPECT(hStreams_GetCurrentOptions(&bad, 79), OUT_OF_RANGE);
  EXPECT(hStreams_GetCurrentOptions(NULL, 80), OUT_OF_RANGE);
  EXPECT(hStreams_SetOptions(NULL), NULL_PTR);
#define WRONG(member, value) \
  bad = good;                \
  bad.member = value;        \
  EXPECT(hStreams_SetOptions(&bad), INCONSISTENT_ARGS)
  WRONG(_hStreams_FatalError, NULL);
  WRONG(kmp_affinity, HSTR_KMP_AFFINITY_SIZE);
  WRONG(dep_policy, HSTR_DEP_POLICY_SIZE);
  WRONG(openmp_policy, -1);
  WRONG(time_out_ms_val, 0);
  WRONG(libNameCnt, 1);
  WRONG(libNamesHost, names);
  bad = good;
  bad.libNameCnt = 1;
  bad.libNames = no_names;
  EXPECT(hStreams_SetOptions(&bad), INCONSISTENT_ARGS);
  bad.libNames = names;
  OK(hStreams_SetOptions(&bad));
  OK(hStreams_GetCurrentOptions(&bad, sizeof bad));
  CHECK(bad.libNames != names && strcmp(bad.libNames[0], "x.so") == 0);
  EXPECT(hStreams_Init(), BAD_NAME); /* no folder has x.so */
}

static void no_card(void) {
  HSTR_OPTIONS options;
  OK(hStreams_GetCurrentOptions(&options, sizeof options));
  options.phys_domains_limit = 0;
  OK(hStreams_SetOptions(&options));
  EXPECT(hStreams_Init(), DEVICE_NOT_INITIALIZED);
  options.phys_domains_limit = 32;
  OK(hStreams_SetOptions(&options));
}

static void libraries(void) {
  char name[] = "errors_client_sink.so"; /* beside the program */
  char *names[1] = {name}, *no_names[1] = {NULL};
  int flags[1] = {0};
  EXPECT(hStreams_SetLibrariesToLoad(HSTR_ISA_INVALID, 1, names, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_SetLibrariesToLoad(HSTR_ISA_MIC, 1, names, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_SetLibrariesToLoad(HSTR_ISA_KNL + 1, 1, names, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_SetLibrariesToLoad(HSTR_ISA_KNC, 0, names, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_SetLibrariesToLoad(HSTR_ISA_KNC, 1, NULL, NULL), NULL_PTR);
  EXPECT(hStreams_SetLibrariesToLoad(HSTR_ISA_KNC, 1, no_names, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_SetLibrariesToLoad(HSTR_ISA_x86_64, 1, names, flags), NOT_IMPLEMENTED);
  OK(hStreams_SetLibrariesToLoad(HSTR_ISA_KNF, 1, names, NULL));
  EXPECT(hStreams_Init(), BAD_NAME);
  OK(hStreams_SetLibrariesToLoad(HSTR_ISA_KNL, 1, names, NULL)); /* this list can be satisfied */
}

static void beginning(void) {
  EXPECT(hStreams_Cfg_SetLogLevel(9), OUT_OF_RANGE);
  EXPECT(hStreams_Cfg_SetLogLevel(-1), OUT_OF_RANGE);
  EXPECT(hStreams_Cfg_SetMKLInterface(HSTR_MKL_INTERFACE_SIZE), OUT_OF_RANGE);
  EXPECT(hStreams_InitInVersion("1.4"), OUT_OF_RANGE);
  EXPECT(hStreams_app_init_in_version(1, 1, ""), OUT_OF_RANGE);
  no_card();
  options();
  libraries();
}

static void not_permitted(void) {
  OK(hStreams_InitInVersion("nonsense")); /* once it is open */
  EXPECT(hStreams_Cfg_SetLogLevel(1), NOT_PERMITTED);
  EXPECT(hStreams_Cfg_SetLogInfoType(1), NOT_PERMITTED);
  EXPECT(hStreams_Cfg_SetMKLInterface(9), OUT_OF_RANGE);
  EXPECT(hStreams_Cfg_SetMKLInterface(HSTR_MKL_NONE), NOT_PERMITTED);
  EXPECT(hStreams_SetLibrariesToLoad(HSTR_ISA_KNC, 0, NULL, NULL), NOT_PERMITTED);
}

static void physical_domains(void) {
  HSTR_ISA_TYPE isa;
  uint64_t bytes[HSTR_MEM_TYPE_SIZE];
  EXPECT(hStreams_GetNumPhysDomains(&count, NULL, &flag), NULL_PTR);
  EXPECT(hStreams_GetPhysDomainDetails(0, &count, NULL, &count, one, two, &big, bytes), NULL_PTR);
  EXPECT(hStreams_GetPhysDomainDetails(-2, &count, &isa, &count, NULL, NULL, &big, bytes),
         DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_GetAvailable(99, empty), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_GetOversubscriptionLevel(0, 12, NULL), NULL_PTR);
  EXPECT(hStreams_GetOversubscriptionLevel(99, 12, number), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_GetOversubscriptionLevel(0, 3, number), NOT_FOUND);
}

static void logical_domains(void) {
  HSTR_PHYS_DOM physical;
  EXPECT(hStreams_AddLogDomain(0, empty, NULL, &overlap), NULL_PTR);
  EXPECT(hStreams_AddLogDomain(99, empty, &domain, &overlap), CPU_MASK_OUT_OF_RANGE);
  EXPECT(hStreams_AddLogDomain(99, one, &domain, &overlap), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_AddLogDomain(0, far_away, &domain, &overlap), CPU_MASK_OUT_OF_RANGE);
  OK(hStreams_AddLogDomain(0, two, &domain, &overlap));
  EXPECT(hStreams_AddLogDomain(0, one, domains, &overlap), OVERLAPPING_RESOURCES);
  CHECK(overlap == HSTR_PARTIAL_OVERLAP);
  EXPECT(hStreams_RmLogDomains(1, NULL), NULL_PTR);
  EXPECT(hStreams_RmLogDomains(0, domains), OUT_OF_RANGE);
  domains[0] = 77;
  EXPECT(hStreams_RmLogDomains(1, domains), NOT_FOUND);
  domains[0] = HSTR_SRC_LOG_DOMAIN;
  EXPECT(hStreams_RmLogDomains(1, domains), NOT_FOUND);
  EXPECT(hStreams_GetNumLogDomains(0, NULL), NULL_PTR);
  EXPECT(hStreams_GetNumLogDomains(99, &count), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_GetLogDomainIDList(0, 1, NULL), NULL_PTR);
  EXPECT(hStreams_GetLogDomainIDList(99, 1, domains), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_GetLogDomainIDList(0, 2, domains), NOT_FOUND);
  CHECK(domains[0] == domain);
  EXPECT(hStreams_GetLogDomainIDList(0, 0, domains), INCONSISTENT_ARGS);
  EXPECT(hStreams_GetLogDomainDetails(0, NULL, one), NULL_PTR);
  EXPECT(hStreams_GetLogDomainDetails(77, &physical, NULL), NOT_FOUND);
}

static void stream_errors(void) {
  EXPECT(hStreams_StreamCreate(1, domain, empty), CPU_MASK_OUT_OF_RANGE);
  EXPECT(hStreams_StreamCreate(1, 77, one), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_StreamCreate(1, 0, one), CPU_MASK_OUT_OF_RANGE);
  EXPECT(hStreams_StreamCreate(1, domain, far_away), CPU_MASK_OUT_OF_RANGE);
  OK(hStreams_StreamCreate(1, domain, one));
  EXPECT(hStreams_StreamCreate(1, 77, one), ALREADY_FOUND);
  EXPECT(hStreams_StreamDestroy(9), NOT_FOUND);
  EXPECT(hStreams_GetNumLogStreams(domain, NULL), NULL_PTR);
  EXPECT(hStreams_GetNumLogStreams(77, &count), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_GetLogStreamIDList(domain, 1, NULL), NULL_PTR);
  EXPECT(hStreams_GetLogStreamIDList(77, 1, streams), NOT_FOUND);
  EXPECT(hStreams_GetLogStreamIDList(domain, 2, streams), NOT_FOUND);
  EXPECT(hStreams_GetLogStreamIDList(domain, 0, streams), INCONSISTENT_ARGS);
  EXPECT(hStreams_GetLogStreamDetails(9, domain, one), NOT_FOUND);
  OK(hStreams_GetLogStreamDetails(1, 77, NULL));
}

static void buffers(void) {
  HSTR_BUFFER_PROPS props = HSTR_BUFFER_PROPS_INITIAL_VALUES;
  HSTR_LOG_DOM list[2];
  list[0] = list[1] = domain;
  EXPECT(hStreams_Alloc1D(data, 0), OUT_OF_RANGE);
  EXPECT(hStreams_Alloc1D(data, UINT64_MAX), OUT_OF_RANGE);
  EXPECT(hStreams_Alloc1D(NULL, 8), NULL_PTR);
  EXPECT(hStreams_Alloc1DEx(data, 8, NULL, -2, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_Alloc1DEx(data, 8, NULL, 1, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_Alloc1DEx(data, 8, NULL, -1, list), INCONSISTENT_ARGS);
  EXPECT(hStreams_Alloc1DEx(data, 8, NULL, 2, list), INCONSISTENT_ARGS);
  list[0] = 0;
  EXPECT(hStreams_Alloc1DEx(data, 8, NULL, 2, list), DOMAIN_OUT_OF_RANGE);
  list[0] = 77;
  EXPECT(hStreams_Alloc1DEx(data, 8, NULL, 2, list), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_Alloc1D(data, (uint64_t)1 << 50), OUT_OF_MEMORY);
  props.mem_type = 2;
  EXPECT(hStreams_Alloc1DEx(data, 8, &props, -1, NULL), NOT_IMPLEMENTED);
  props.mem_type = HSTR_MEM_TYPE_HBW;
  props.mem_alloc_policy = HSTR_MEM_ALLOC_STRICT;
  EXPECT(hStreams_Alloc1DEx(data, 8, &props, -1, NULL), OUT_OF_MEMORY);
  props.mem_type = HSTR_MEM_TYPE_NORMAL;
  props.mem_alloc_policy = 5;
  props.flags = 1 << 20;
  OK(hStreams_Alloc1DEx(data + 8, 1000, &props, -1, NULL));
  EXPECT(hStreams_Alloc1D(data + 8, 1000), ALREADY_FOUND);
  EXPECT(hStreams_Alloc1D(data + 10, 10), ALREADY_FOUND);
  EXPECT(hStreams_Alloc1D(data, 9), OVERLAPPING_RESOURCES);
  EXPECT(hStreams_Alloc1D(data + 1000, 100), OVERLAPPING_RESOURCES);
  EXPECT(hStreams_Alloc1D(data, 2000), OVERLAPPING_RESOURCES);
  OK(hStreams_Alloc1D(data, 8));
  OK(hStreams_Alloc1DEx(other, sizeof other, NULL, 0, NULL));

  EXPECT(hStreams_DeAlloc(NULL), NULL_PTR);
  EXPECT(hStreams_DeAlloc(data + 3000), NOT_FOUND);
  EXPECT(hStreams_GetBufferNumLogDomains(data, NULL), NULL_PTR);
  EXPECT(hStreams_GetBufferNumLogDomains(data + 3000, &big), NOT_FOUND);
  EXPECT(hStreams_GetBufferProps(NULL, &props), NULL_PTR);
  EXPECT(hStreams_GetBufferProps(data + 3000, &props), NOT_FOUND);
  EXPECT(hStreams_GetBufferLogDomains(data, 1, NULL, &big), NULL_PTR);
  EXPECT(hStreams_GetBufferLogDomains(data, 0, domains, &big), OUT_OF_RANGE);
  EXPECT(hStreams_GetBufferLogDomains(data + 3000, 1, domains, &big), NOT_FOUND);
}

/* Instances for which there is no memory: none is made, and nothing is changed. */
static void too_large(void) {
  HSTR_BUFFER_PROPS props = HSTR_BUFFER_PROPS_INITIAL_VALUES_EX;
  HSTR_LOG_DOM list[1], second;
  char* const base = (char*)((uint64_t)1 << 40); /* unmapped, and never accessed */
  list[0] = domain;
  props.flags = HSTR_BUF_PROP_INCREMENTAL;
  OK(hStreams_Alloc1DEx(base, (uint64_t)1 << 46, &props, 0, NULL));
  EXPECT(hStreams_AddBufferLogDomains(base, 1, list), OUT_OF_MEMORY);
  EXPECT(hStreams_AddLogDomain(0, two, &second, &overlap), OUT_OF_MEMORY);
  OK(hStreams_GetNumLogDomains(0, &count));
  CHECK(count == 1);
  OK(hStreams_GetBufferNumLogDomains(base, &big));
  CHECK(big == 0);
  OK(hStreams_DeAlloc(base));
}

static void instances(void) {
  HSTR_LOG_DOM list[2], second;
  list[0] = list[1] = domain;
  EXPECT(hStreams_AddBufferLogDomains(data, 0, list), OUT_OF_RANGE);
  EXPECT(hStreams_AddBufferLogDomains(NULL, 1, list), NULL_PTR);
  EXPECT(hStreams_AddBufferLogDomains(data, 1, NULL), NULL_PTR);
  EXPECT(hStreams_AddBufferLogDomains(data + 3000, 1, list), NOT_FOUND);
  EXPECT(hStreams_AddBufferLogDomains(data, 2, list), INCONSISTENT_ARGS);
  EXPECT(hStreams_AddBufferLogDomains(data, 1, list), ALREADY_FOUND);
  EXPECT(hStreams_RmBufferLogDomains(NULL, 1, list), NULL_PTR);
  EXPECT(hStreams_RmBufferLogDomains(data, 0, list), OUT_OF_RANGE);
  EXPECT(hStreams_RmBufferLogDomains(data, -2, list), OUT_OF_RANGE);
  EXPECT(hStreams_RmBufferLogDomains(data, -1, list), INCONSISTENT_ARGS);
  EXPECT(hStreams_RmBufferLogDomains(data, 1, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_RmBufferLogDomains(data + 3000, 1, list), NOT_FOUND);
  EXPECT(hStreams_RmBufferLogDomains(data, 2, list), INCONSISTENT_ARGS);
  EXPECT(hStreams_RmBufferLogDomains(other, 1, list), NOT_FOUND);
  list[0] = 0;
  EXPECT(hStreams_AddBufferLogDomains(data, 1, list), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_RmBufferLogDomains(data, 1, list), DOMAIN_OUT_OF_RANGE);
  list[0] = 77;
  EXPECT(hStreams_AddBufferLogDomains(data, 1, list), DOMAIN_OUT_OF_RANGE);
  EXPECT(hStreams_RmBufferLogDomains(data, 1, list), DOMAIN_OUT_OF_RANGE);
  OK(hStreams_AddLogDomain(0, two, &second, &overlap));
  OK(hStreams_AddBufferLogDomains(data, 1, &second));
  EXPECT(hStreams_GetBufferLogDomains(data, 1, domains, &big), INCONSISTENT_ARGS);
  CHECK(big == 2 && domains[0] == domain);
  OK(hStreams_RmLogDomains(1, &second));
}

static void computes(void) {
  char long_name[100];
  memset(long_name, 'x', sizeof long_name);
  long_name[80] = '\0';
  EXPECT(hStreams_EnqueueCompute(9, NULL, 0, 0, NULL, NULL, NULL, 0), BAD_NAME);
  EXPECT(hStreams_EnqueueCompute(9, "nothing", 1, 0, NULL, NULL, data, 65), OUT_OF_RANGE);
  EXPECT(hStreams_EnqueueCompute(9, "nothing", 0, 1, NULL, NULL, data, 0), NULL_PTR);
  EXPECT(hStreams_EnqueueCompute(9, "nothing", 0, 0, NULL, NULL, data, 0), INCONSISTENT_ARGS);
  EXPECT(hStreams_EnqueueCompute(9, "nothing", 0, 0, NULL, NULL, NULL, 8), INCONSISTENT_ARGS);
  EXPECT(hStreams_EnqueueCompute(9, long_name, UINT32_MAX, 0, args, NULL, NULL, 0), BAD_NAME);
  EXPECT(hStreams_EnqueueCompute(9, "nothing", UINT32_MAX, 1, args, NULL, NULL, 0), TOO_MANY_ARGS);
  EXPECT(hStreams_EnqueueCompute(9, "no such function", 0, 0, NULL, NULL, NULL, 0), NOT_FOUND);
  args[0] = (uint64_t)(data + 3000);
  EXPECT(hStreams_EnqueueCompute(1, "no such function", 0, 1, args, NULL, NULL, 0), NOT_FOUND);
  args[0] = (uint64_t)other;
  EXPECT(hStreams_EnqueueCompute(1, "no such function", 0, 1, args, NULL, NULL, 0), NOT_FOUND);
  EXPECT(hStreams_EnqueueCompute(1, "no such function", 0, 0, NULL, NULL, NULL, 0), BAD_NAME);
  OK(hStreams_EnqueueCompute(1, "nothing", 0, 0, NULL, NULL, NULL, 0));
  EXPECT(hStreams_app_dgemm(1, CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, NULL, 1, NULL,
                            1, 1, NULL, 1, NULL),
         NULL_PTR);
  EXPECT(hStreams_app_memcpy(1, data, NULL, 1, NULL), NULL_PTR);
}

static void transfers(void) {
  HSTR_LOG_DOM second;
  EXPECT(hStreams_EnqueueData1D(9, NULL, NULL, 0, 9, NULL), NOT_FOUND);
  EXPECT(hStreams_EnqueueData1D(1, NULL, NULL, 0, 2, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_EnqueueData1D(1, NULL, data, 0, HSTR_SRC_TO_SINK, NULL), NULL_PTR);
  EXPECT(hStreams_EnqueueData1D(1, data, data, 0, HSTR_SRC_TO_SINK, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_EnqueueDataXDomain1D(1, NULL, data, 1, domain, 0, NULL), NULL_PTR);
  EXPECT(hStreams_EnqueueDataXDomain1D(1, data, data, 0, domain, 0, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_EnqueueDataXDomain1D(1, data, data, 1, 77, domain, NULL), NOT_FOUND);
  EXPECT(hStreams_EnqueueDataXDomain1D(1, data, data, 1, domain, 77, NULL), NOT_FOUND);
  EXPECT(hStreams_EnqueueDataXDomain1D(1, data, data, 1, domain, domain, NULL), OUT_OF_RANGE);
  OK(hStreams_AddLogDomain(0, two, &second, &overlap));
  EXPECT(hStreams_EnqueueDataXDomain1D(1, data, data, 1, second, 0, NULL), OUT_OF_RANGE);
  OK(hStreams_RmLogDomains(1, &second));
  EXPECT(hStreams_EnqueueData1D(1, data + 3000, data, 1, HSTR_SRC_TO_SINK, NULL), NOT_FOUND);
  EXPECT(hStreams_EnqueueData1D(1, data, data + 3000, 1, HSTR_SRC_TO_SINK, NULL), NOT_FOUND);
  EXPECT(hStreams_EnqueueData1D(1, data + 8, data + 8, 1001, HSTR_SRC_TO_SINK, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_EnqueueData1D(1, data, data + 1007, 2, HSTR_SRC_TO_SINK, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_EnqueueData1D(1, other, data, 1, HSTR_SRC_TO_SINK, NULL), NOT_FOUND);
  EXPECT(hStreams_EnqueueData1D(1, data, other, 1, HSTR_SINK_TO_SRC, NULL), NOT_FOUND);
}

static void waits(void) {
  HSTR_EVENT events[2] = {HSTR_EVENT_INITIALIZER, HSTR_EVENT_INITIALIZER};
  void* addresses[1];
  addresses[0] = data + 3000;
  EXPECT(hStreams_StreamSynchronize(9), NOT_FOUND);
  EXPECT(hStreams_EventWait(0, events, true, -1, NULL, NULL), OUT_OF_RANGE);
  EXPECT(hStreams_EventWait(1, NULL, true, -1, NULL, NULL), NULL_PTR);
  EXPECT(hStreams_EventWait(2, events, false, -1, NULL, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_EventStreamWait(9, 1, NULL, 0, NULL, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_EventStreamWait(9, 0, events, 0, NULL, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_EventStreamWait(9, 0, NULL, 1, NULL, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_EventStreamWait(9, 0, NULL, 0, addresses, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_EventStreamWait(9, 0, NULL, HSTR_WAIT_NONE, NULL, NULL), INCONSISTENT_ARGS);
  EXPECT(hStreams_EventStreamWait(9, 0, NULL, 0, NULL, NULL), NOT_FOUND);
  EXPECT(hStreams_EventStreamWait(1, 0, NULL, 1, addresses, NULL), NOT_FOUND);
  addresses[0] = other;
  EXPECT(hStreams_EventStreamWait(1, 0, NULL, 1, addresses, NULL), NOT_FOUND);
  OK(hStreams_EventStreamWait(1, 0, NULL, 0, NULL, &event));
}

static void app_init(void) {
  uint32_t places[2] = {0, 0};
  EXPECT(hStreams_app_init(0, 1), OUT_OF_RANGE);
  EXPECT(hStreams_app_init(1, 0), OUT_OF_RANGE);
  EXPECT(hStreams_app_init_domains(1, NULL, 1), NULL_PTR);
  EXPECT(hStreams_app_init_domains(0, places, 1), OUT_OF_RANGE);
  EXPECT(hStreams_app_init_domains(1, places, 0), OUT_OF_RANGE);
  EXPECT(hStreams_app_init_domains(2, places, 1), OUT_OF_RANGE);
  EXPECT(hStreams_app_init(1000, 1), OUT_OF_RANGE);
  EXPECT(hStreams_IsInitialized(), NOT_INITIALIZED);
  OK(hStreams_app_init(1, 1));
  places[0] = 1;
  EXPECT(hStreams_app_init_domains(40, number, 1), INCONSISTENT_ARGS);
  CHECK(hStreams_GetLastError() == HSTR_RESULT_INCONSISTENT_ARGS);
  hStreams_ClearLastError();
  CHECK(hStreams_GetLastError() == HSTR_RESULT_SUCCESS);
  OK(hStreams_Fini());
  OK(hStreams_Init());
  set(two, 0, 1);
  OK(hStreams_AddLogDomain(0, two, &domain, &overlap));
  OK(hStreams_StreamCreate(0, domain, two));
  EXPECT(hStreams_app_init(1, 1), ALREADY_FOUND);
  OK(hStreams_StreamDestroy(0));
  places[0] = 1000;
  EXPECT(hStreams_app_init_domains(1, places, 1), OUT_OF_RANGE);
  OK(hStreams_GetNumLogDomains(0, &count));
  CHECK(count == 1); /* what failed has left nothing */
  OK(hStreams_app_init(1, 1));
  OK(hStreams_StreamSynchronize(0));
  OK(hStreams_Fini());
}

int main(void) {
  setenv("WEIR_HSTREAMS_THREADS", "12", 1);
  set(one, 2, 1);
  set(two, 2, 2);
  set(far_away, 2, 20);
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  OK(hStreams_GetLastError());
  not_initialized();
  version();
  beginning();
  OK(hStreams_Init());
  CHECK(hStreams_GetLastError() == HSTR_RESULT_SUCCESS);
  not_permitted();
  physical_domains();
  logical_domains();
  stream_errors();
  too_large();
  buffers();
  instances();
  computes();
  transfers();
  waits();
  OK(hStreams_Fini());
  app_init();
  return 0;
}
