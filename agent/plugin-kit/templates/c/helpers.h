// Texts and settings for a plugin in C. Yours to change.
#pragma once
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "@WORLD_SNAKE@.h"

typedef @WORLD_SNAKE@_string_t text_t;

// A text of its own, as printf writes it. The bindings free what is returned to the agent.
__attribute__((format(printf, 1, 2))) static inline text_t text_of(const char *format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  int length = vsnprintf(NULL, 0, format, values);
  va_end(values);
  char *words = length < 0 ? NULL : malloc((size_t)length + 1);
  if (words) vsnprintf(words, (size_t)length + 1, format, again);
  va_end(again);
  return (text_t){(uint8_t *)words, words ? (size_t)length : 0};
}

// A text that the callee only looks at.
static inline text_t text_borrowed(const char *words) { return (text_t){(uint8_t *)words, strlen(words)}; }

static inline text_t text_copy(text_t text) { return text_of("%.*s", (int)text.len, (const char *)text.ptr); }

static inline void say(latido_plugin_log_level_t level, const char *words) {
  text_t text = text_borrowed(words);
  latido_plugin_log_write(level, &text);
}

// Settings are one JSON object. This reads flat ones, whose values are numbers: it calls `take` for each and stops where
// that says false. Returns what is wrong, or NULL.
static inline const char *settings_read(text_t json, bool (*take)(const char *key, double value)) {
  char *copy = strndup((const char *)json.ptr, json.len), *at = copy;
  const char *wrong = copy ? NULL : "no memory";
#define SKIP() while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r' || *at == ',') at++
  if (copy) {
    SKIP();
    if (*at++ != '{') wrong = "settings are one object";
    while (!wrong) {
      SKIP();
      if (*at == '}') break;
      char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
      if (!end) { wrong = "a key is expected"; break; }
      char *key = at + 1;
      *end = 0;
      at = end + 1;
      SKIP();
      if (*at++ != ':') { wrong = "a colon is expected behind a key"; break; }
      SKIP();
      double value = strtod(at, &end);
      if (end == at) { wrong = "settings are numbers"; break; }
      at = end;
      if (!take(key, value)) wrong = "a setting is unknown, or out of its bounds; `describe` has the schema";
    }
  }
#undef SKIP
  free(copy);
  return wrong;
}
