/* Sink libraries: the one of the program's name, listed ones, those of other devices, and functions
   that stand for built-in ones. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

static uint64_t where;

HSTREAMS_EXPORT void in_both(uint64_t* out) { *out = 1; }

static HSTR_RESULT ask(HSTR_LOG_STR stream, const char* function) {
  uint64_t args[1];
  HSTR_RESULT result;
  args[0] = (uint64_t)&where;
  where = 0;
  result = hStreams_EnqueueCompute(stream, function, 0, 1, args, NULL, NULL, 0);
  if (result != HSTR_RESULT_SUCCESS) return result;
  OK(hStreams_EnqueueData1D(stream, &where, &where, sizeof where, HSTR_SINK_TO_SRC, NULL));
  return hStreams_StreamSynchronize(stream);
}

static void begin(void) {
  HSTR_CPU_MASK mask;
  HSTR_LOG_DOM domain;
  HSTR_OVERLAP_TYPE overlap;
  HSTR_CPU_MASK_ZERO(mask);
  HSTR_CPU_MASK_SET(2, mask);
  OK(hStreams_app_init(1, 1));
  OK(hStreams_AddLogDomain(HSTR_SRC_PHYS_DOMAIN, mask, &domain, &overlap));
  OK(hStreams_StreamCreate(1000, domain, mask));
  OK(hStreams_app_create_buf(&where, sizeof where));
}

static void list(HSTR_ISA_TYPE isa, const char* name) {
  char copy[100];
  char* names[1] = {copy};
  snprintf(copy, sizeof copy, "%s", name);
  OK(hStreams_SetLibrariesToLoad(isa, 1, names, NULL));
}

static void the_default_library(void) {
  begin();
  OK(ask(0, "in_mic"));
  CHECK(where == 2);
  OK(ask(0, "in_both")); /* before that of the program */
  CHECK(where == 2);
  OK(ask(1000, "in_both")); /* the host has no library */
  CHECK(where == 1);
  EXPECT(ask(1000, "in_listed"), BAD_NAME);
  OK(hStreams_Fini());
}

static void listed_libraries(void) {
  HSTR_OPTIONS options;
  char host[] = "libraries_client_listed.so", missing[] = "none.so";
  char *hosts[1] = {host}, *cards[1] = {missing};
  OK(hStreams_GetCurrentOptions(&options, sizeof options));
  options.libNameCntHost = 1;
  options.libNamesHost = hosts;
  options.libNameCnt = 1;
  options.libNames = cards;
  OK(hStreams_SetOptions(&options)); /* the list of the host satisfies the devices */
  begin();
  OK(ask(1000, "in_listed"));
  CHECK(where == 3);
  OK(ask(1000, "in_both"));
  CHECK(where == 3);
  OK(ask(0, "in_listed"));
  CHECK(where == 3);
  OK(hStreams_Fini());
}

static void lists_of_two_cards(void) {
  list(HSTR_ISA_KNC, "none.so");
  list(HSTR_ISA_KNL, "libraries_client_listed.so");
  begin();
  OK(ask(0, "in_listed"));
  CHECK(where == 3);
  OK(hStreams_Fini());
}

static void folders(void) {
  char path[4096];
  CHECK(realpath("libraries_client_listed.so", path) != NULL);
  list(HSTR_ISA_KNC, path);
  begin();
  OK(ask(0, "in_listed"));
  OK(hStreams_Fini());
  CHECK(system("mkdir -p elsewhere && cp libraries_client_listed.so elsewhere/moved.so") == 0);
  list(HSTR_ISA_KNC, "moved.so");
  EXPECT(hStreams_Init(), BAD_NAME);
  setenv("SINK_LD_LIBRARY_PATH", "nowhere::elsewhere", 1);
  begin();
  OK(ask(0, "in_listed"));
  OK(hStreams_Fini());
  unsetenv("SINK_LD_LIBRARY_PATH");
  list(HSTR_ISA_x86_64, "moved.so");
  EXPECT(hStreams_Init(), BAD_NAME);
  setenv("HOST_SINK_LD_LIBRARY_PATH", "elsewhere", 1);
  begin();
  OK(ask(1000, "in_listed"));
  CHECK(where == 3);
  OK(hStreams_Fini());
}

/* The library has a function with the name of a built-in one. */
static void instead_of_built_in(void) {
  list(HSTR_ISA_x86_64, "libraries_client_listed.so");
  begin();
  OK(hStreams_app_memset(1000, &where, 7, sizeof where, NULL));
  OK(hStreams_EnqueueData1D(1000, &where, &where, sizeof where, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_StreamSynchronize(1000));
  CHECK(where == 4);
  OK(hStreams_Fini());
}

static void no_blas(void) {
  double x = 2;
  OK(hStreams_Cfg_SetMKLInterface(HSTR_MKL_NONE));
  begin();
  OK(hStreams_app_create_buf(&x, sizeof x));
  EXPECT(hStreams_app_dgemm(0, CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &x, 1, &x, 1,
                            0, &x, 1, NULL),
         BAD_NAME);
  OK(hStreams_app_memset(0, &x, 0, sizeof x, NULL));
  OK(hStreams_Fini());
}

int main(void) {
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  no_blas();
  the_default_library();
  listed_libraries();
  lists_of_two_cards();
  folders();
  instead_of_built_in();
  return 0;
}
