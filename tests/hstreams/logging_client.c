/* Messages: their levels, kinds and form, and where they go. */
#include <fcntl.h>
#include <hStreams_source.h>
#include <unistd.h>

#include "check.h"

static char text[1 << 16];

/* Runs a program's life with a stream of output in a file, and reads that. */
static void record(int descriptor, HSTR_LOG_LEVEL level, uint64_t kinds) {
  FILE* file;
  size_t length;
  const int saved = dup(descriptor);
  const int captured = open("log.txt", O_CREAT | O_TRUNC | O_WRONLY, 0600);
  CHECK(saved >= 0 && captured >= 0 && dup2(captured, descriptor) >= 0);
  OK(hStreams_Cfg_SetLogLevel(level));
  OK(hStreams_Cfg_SetLogInfoType(kinds));
  OK(hStreams_Init());
  EXPECT(hStreams_StreamSynchronize(3), NOT_FOUND);
  EXPECT(hStreams_DeAlloc(text), NOT_FOUND);
  OK(hStreams_Fini());
  fflush(stdout);
  dup2(saved, descriptor);
  close(saved);
  close(captured);
  file = fopen("log.txt", "r");
  length = fread(text, 1, sizeof text - 1, file);
  text[length] = '\0';
  fclose(file);
}

static int lines(void) {
  int count = 0;
  for (const char* at = text; *at != '\0'; ++at) count += *at == '\n';
  return count;
}

int main(void) {
  unsigned long process, thread;
  long milliseconds;
  int domain;
  char level[16], kind[16];

  record(STDERR_FILENO, HSTR_LOG_LEVEL_ERROR, UINT64_MAX);
  CHECK(lines() == 2);
  CHECK(sscanf(text, "%ld %d 0x%lx 0x%lx %15s %15s", &milliseconds, &domain, &process, &thread,
               level, kind) == 6);
  CHECK(domain == -1 && process == (unsigned long)getpid());
  CHECK(strcmp(level, "ERROR") == 0 && strcmp(kind, "SYNC") == 0);
  CHECK(strstr(text, "hStreams_StreamSynchronize returns HSTR_RESULT_NOT_FOUND: ") != NULL);
  CHECK(text[strlen(text) - 2] == ')' && strstr(text, ".cpp:") != NULL);

  record(STDERR_FILENO, HSTR_LOG_LEVEL_DEBUG4, HSTR_INFO_TYPE_MEM);
  CHECK(lines() == 1 && strstr(text, "hStreams_DeAlloc") != NULL && strstr(text, "ALLOC") != NULL);

  record(STDERR_FILENO, HSTR_LOG_LEVEL_NO_LOGGING, UINT64_MAX);
  CHECK(lines() == 0);
  record(STDOUT_FILENO, HSTR_LOG_LEVEL_ERROR, UINT64_MAX);
  CHECK(lines() == 0);

  record(STDOUT_FILENO, HSTR_LOG_LEVEL_DEBUG1, HSTR_INFO_TYPE_TRACE);
  CHECK(strstr(text, "DEBUG1   TRACE") != NULL && strstr(text, "hStreams_Fini") != NULL);
  CHECK(strstr(text, "DEBUG2") == NULL && strstr(text, "NOT_FOUND") == NULL);
  record(STDOUT_FILENO, HSTR_LOG_LEVEL_DEBUG2, HSTR_INFO_TYPE_TRACE);
  CHECK(strstr(text, "hStreams_StreamSynchronize(3)") != NULL);
  CHECK(strstr(text, "hStreams_InitInVersion(\"1.3\")") != NULL);
  record(STDOUT_FILENO, HSTR_LOG_LEVEL_LOG, UINT64_MAX);
  CHECK(strstr(text, " LOG      MISC ") != NULL);
  return 0;
}
