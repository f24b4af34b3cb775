// @NAME@: a sink for latido.
#include "entries.h"

#define FILE_NAME "main"     // the granted file, by this plugin's name for it
#define FULL_RETRY_MS 10000 // somebody has to make room first

void exports_latido_plugin_lifecycle_describe(exports_latido_plugin_lifecycle_description_t *ret) {
  ret->name = text_of("@NAME@");
  ret->version = text_of("0.1.0");
  ret->summary = text_of("Appends each entry to a file, as one line");
  ret->settings_schema = text_of("{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}");
}

static bool take(const char *key, double value) {
  (void)key;
  (void)value;
  return false; // there are no settings
}

bool exports_latido_plugin_lifecycle_configure(text_t *settings, exports_latido_plugin_lifecycle_plugin_error_t *err) {
  const char *wrong = settings_read(*settings, take);
  storage_sink_string_free(settings); // what comes in belongs to the plugin
  if (wrong) {
    err->tag = LATIDO_PLUGIN_TYPES_PLUGIN_ERROR_INVALID_CONFIG;
    err->val.invalid_config = text_of("%s", wrong);
    return false;
  }
  return true;
}

typedef struct {
  char *words;
  size_t length, room;
} lines_t;

// Adds a text; what would break a line becomes a space.
static void add(lines_t *lines, const char *words, size_t length) {
  if (lines->length + length > lines->room) {
    lines->room = 2 * (lines->length + length) + 4096;
    lines->words = realloc(lines->words, lines->room);
    if (!lines->words) abort();
  }
  for (size_t i = 0; i < length; i++) {
    char c = words[i];
    lines->words[lines->length++] = c == '\n' || c == '\r' ? ' ' : c;
  }
}

static void add_number(lines_t *lines, double number) {
  char digits[64];
  int length = number == (double)(long long)number ? snprintf(digits, sizeof digits, "%lld", (long long)number)
                                                   : snprintf(digits, sizeof digits, "%.17g", number);
  add(lines, digits, (size_t)length);
}

bool exports_latido_plugin_sink_write(exports_latido_plugin_sink_batch_t *batch,
                                      exports_latido_plugin_sink_acknowledgement_t *ret,
                                      exports_latido_plugin_sink_plugin_error_t *err) {
  lines_t lines = {0};
  uint64_t durable = 0;
  field_t field;
  for (entries_t entry = entries_of(batch); entries_next(&entry); durable = entry.sequence) {
    char start[64];
    int length = snprintf(start, sizeof start, "%llu %llu ", (unsigned long long)entry.sequence, (unsigned long long)entry.at);
    add(&lines, start, (size_t)length);
    add(&lines, (const char *)entry.kind.ptr, entry.kind.len);
    while (entries_field(&entry, &field)) {
      add(&lines, " ", 1);
      add(&lines, (const char *)field.name.ptr, field.name.len);
      add(&lines, "=", 1);
      if (field.text) add(&lines, field.text, strlen(field.text));
      else add_number(&lines, field.number);
    }
    add(&lines, " ", 1);
    lines.words[lines.length - 1] = '\n';
  }
  exports_latido_plugin_sink_batch_free(batch);
  text_t file = text_borrowed(FILE_NAME), text = {(uint8_t *)lines.words, lines.length};
  latido_plugin_files_file_error_t wrong;
  bool is_kept = lines.length == 0 || latido_plugin_files_append(&file, &text, &wrong);
  free(lines.words);
  if (is_kept) {
    // Delivery is at least once: what is not acknowledged comes again.
    ret->durable = durable;
    ret->refused.ptr = NULL;
    ret->refused.len = 0;
    return true;
  }
  switch (wrong.tag) {
  case LATIDO_PLUGIN_FILES_FILE_ERROR_DENIED:
    err->tag = LATIDO_PLUGIN_TYPES_PLUGIN_ERROR_DENIED;
    err->val.denied = wrong.val.denied; // handed on: the bindings free it
    break;
  case LATIDO_PLUGIN_FILES_FILE_ERROR_FULL:
    err->tag = LATIDO_PLUGIN_TYPES_PLUGIN_ERROR_RETRY_AFTER;
    err->val.retry_after = FULL_RETRY_MS;
    break;
  default:
    err->tag = LATIDO_PLUGIN_TYPES_PLUGIN_ERROR_RETRY;
    err->val.retry = wrong.val.failed;
  }
  return false;
}

bool exports_latido_plugin_sink_flush(exports_latido_plugin_sink_plugin_error_t *err) {
  (void)err;
  return true; // nothing is buffered
}
