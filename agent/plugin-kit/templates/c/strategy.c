// @NAME@: a strategy for latido.
#include "helpers.h"

static const char SCHEMA[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"attempts_max\":{\"type\":\"integer\",\"minimum\":1,"
    "\"default\":5,\"description\":\"how many attempts may end before a person is asked\"}}}";

static size_t attempts_max = 5;

void exports_latido_plugin_lifecycle_describe(exports_latido_plugin_lifecycle_description_t *ret) {
  ret->name = text_of("@NAME@");
  ret->version = text_of("0.1.0");
  ret->summary = text_of("Launches a job again until it has died too often");
  ret->settings_schema = text_of("%s", SCHEMA);
}

static bool take(const char *key, double value) {
  if (strcmp(key, "attempts_max") != 0 || !(value >= 1 && value <= 1e6) || value != (double)(size_t)value) return false;
  attempts_max = (size_t)value;
  return true;
}

bool exports_latido_plugin_lifecycle_configure(text_t *settings, exports_latido_plugin_lifecycle_plugin_error_t *err) {
  const char *wrong = settings_read(*settings, take);
  resume_strategy_string_free(settings); // what comes in belongs to the plugin
  if (wrong) {
    err->tag = LATIDO_PLUGIN_TYPES_PLUGIN_ERROR_INVALID_CONFIG;
    err->val.invalid_config = text_of("%s", wrong);
    return false;
  }
  return true;
}

bool exports_latido_plugin_strategy_decide(exports_latido_plugin_strategy_situation_t *situation,
                                           exports_latido_plugin_strategy_decision_t *ret,
                                           exports_latido_plugin_strategy_plugin_error_t *err) {
  (void)err;
  size_t ended = 0;
  for (size_t i = 0; i < situation->attempts.len; i++) ended += situation->attempts.ptr[i].outcome.is_some;
  if (ended >= attempts_max) {
    ret->tag = EXPORTS_LATIDO_PLUGIN_STRATEGY_DECISION_HOLD;
    ret->val.hold = text_of("%zu attempts have ended", ended);
  } else {
    ret->tag = EXPORTS_LATIDO_PLUGIN_STRATEGY_DECISION_LAUNCH;
    ret->val.launch = situation->command; // handed on: the bindings free it
    memset(&situation->command, 0, sizeof situation->command);
  }
  exports_latido_plugin_strategy_situation_free(situation);
  return true;
}

// A line such as `50%` says how far the work is.
static bool percent_in(text_t line, double *percent) {
  char word[32], *end;
  if (line.len == 0 || line.len >= sizeof word) return false;
  memcpy(word, line.ptr, line.len);
  word[line.len] = 0;
  *percent = strtod(word, &end);
  return end != word && strcmp(end, "%") == 0 && *percent >= 0 && *percent <= 100;
}

bool exports_latido_plugin_strategy_observe(exports_latido_plugin_strategy_output_t *output,
                                            exports_latido_plugin_strategy_option_observation_t *ret,
                                            exports_latido_plugin_strategy_plugin_error_t *err) {
  (void)err;
  memset(ret, 0, sizeof *ret);
  for (size_t i = output->lines.len; i-- > 0 && !ret->is_some;) {
    double percent;
    if (!percent_in(output->lines.ptr[i], &percent)) continue;
    ret->is_some = true;
    ret->val.progress.is_some = true;
    ret->val.progress.val.fraction.is_some = true;
    ret->val.progress.val.fraction.val = percent / 100;
  }
  exports_latido_plugin_strategy_output_free(output);
  return true;
}
