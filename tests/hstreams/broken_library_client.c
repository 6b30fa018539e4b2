/* Sink libraries that exist and cannot be loaded: the loader's message is in the log, and in what a
   call of a function says that is therefore missing. */
#include <hStreams_app_api.h>

#include "check.h"

static const char* const said = "stderr.txt";

static void write_file(const char* name, const char* text) {
  FILE* const file = fopen(name, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Counts lines of what was printed that have both texts, and forgets them. */
static int lines_with(const char* first, const char* second) {
  char line[4096];
  int count = 0;
  FILE* const file = fflush(stderr) == 0 ? fopen(said, "r") : NULL;
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL) {
    if (strstr(line, first) != NULL && strstr(line, second) != NULL) ++count;
  }
  fclose(file);
  CHECK(freopen(said, "w", stderr) != NULL);
  return count;
}

static void host_stream(HSTR_LOG_STR stream) {
  HSTR_CPU_MASK mask;
  HSTR_LOG_DOM domain;
  HSTR_OVERLAP_TYPE overlap;
  HSTR_CPU_MASK_ZERO(mask);
  HSTR_CPU_MASK_SET(2, mask);
  OK(hStreams_AddLogDomain(HSTR_SRC_PHYS_DOMAIN, mask, &domain, &overlap));
  OK(hStreams_StreamCreate(stream, domain, mask));
}

static void the_default_library(const char* name, HSTR_LOG_STR stream) {
  write_file(name, "this is not a library");
  CHECK(freopen(said, "w", stderr) != NULL);
  OK(hStreams_app_init(1, 1));
  CHECK(lines_with("ERROR", name) >= 1);
  host_stream(1000);
  EXPECT(hStreams_app_invoke(stream, "missing", 0, 0, NULL, NULL, NULL, 0), BAD_NAME);
  CHECK(lines_with("'missing'", name) == 1);
  OK(hStreams_app_fini());
  CHECK(remove(name) == 0);
}

static void a_library_listed_for_the_host(const char* wanted, const char* text) {
  char name[] = "listed.so";
  char* names[1] = {name};
  if (text != NULL) write_file(name, text);
  OK(hStreams_SetLibrariesToLoad(HSTR_ISA_x86_64, 1, names, NULL));
  EXPECT(hStreams_Init(), BAD_NAME); /* a list for the host is one for devices, too */
  CHECK(lines_with(name, wanted) >= 1);
}

int main(void) {
  the_default_library("broken_library_client_mic.so", 0);
  the_default_library("broken_library_client_host.so", 1000);
  a_library_listed_for_the_host("none of its folders", NULL);
  a_library_listed_for_the_host("cannot be loaded", "nor is this");
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  EXPECT(hStreams_Init(), BAD_NAME);
  CHECK(lines_with("listed", "") == 0 && remove("listed.so") == 0);
  return 0;
}
