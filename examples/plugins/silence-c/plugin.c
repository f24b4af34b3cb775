// silence-c: a rule for latido.
#include "helpers.h"

static const char SCHEMA[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"silence_s\":{\"type\":\"number\",\"minimum\":1,"
    "\"default\":120,\"description\":\"how long a subject may be silent, in seconds\"}}}";

static double silence_s = 120;

void exports_latido_plugin_lifecycle_describe(exports_latido_plugin_lifecycle_description_t *ret) {
  ret->name = text_of("silence-c");
  ret->version = text_of("0.1.0");
  ret->summary = text_of("Finds what is silent for too long");
  ret->settings_schema = text_of("%s", SCHEMA);
}

static bool take(const char *key, double value) {
  if (strcmp(key, "silence_s") != 0 || !(value >= 1)) return false;
  silence_s = value;
  return true;
}

bool exports_latido_plugin_lifecycle_configure(text_t *settings, exports_latido_plugin_lifecycle_plugin_error_t *err) {
  const char *wrong = settings_read(*settings, take);
  alert_rule_string_free(settings); // what comes in belongs to the plugin
  if (wrong) {
    err->tag = LATIDO_PLUGIN_TYPES_PLUGIN_ERROR_INVALID_CONFIG;
    err->val.invalid_config = text_of("%s", wrong);
    return false;
  }
  say(LATIDO_PLUGIN_LOG_LEVEL_DEBUG, "configured");
  return true;
}

bool exports_latido_plugin_rule_evaluate(exports_latido_plugin_rule_timestamp_t now,
                                         exports_latido_plugin_rule_list_subject_t *subjects,
                                         exports_latido_plugin_rule_list_finding_t *ret,
                                         exports_latido_plugin_rule_plugin_error_t *err) {
  (void)now;
  (void)err;
  ret->len = 0;
  ret->ptr = subjects->len ? calloc(subjects->len, sizeof *ret->ptr) : NULL;
  for (size_t i = 0; i < subjects->len; i++) {
    const exports_latido_plugin_rule_subject_t *subject = &subjects->ptr[i];
    if (!subject->silence.is_some || (double)subject->silence.val < silence_s * 1000) continue;
    exports_latido_plugin_rule_finding_t *finding = &ret->ptr[ret->len++];
    finding->key = text_of("silent");
    finding->subject = text_copy(subject->name);
    finding->severity = LATIDO_PLUGIN_TYPES_SEVERITY_WARNING;
    finding->summary = text_of("%.*s has been silent for %llu s", (int)subject->name.len, (const char *)subject->name.ptr,
                               (unsigned long long)(subject->silence.val / 1000));
  }
  if (ret->len == 0) free(ret->ptr);
  exports_latido_plugin_rule_list_subject_free(subjects);
  return true;
}
