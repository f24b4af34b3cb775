// Reads a batch entry by entry. Yours to change.
#pragma once
#include "helpers.h"

typedef struct {
  const latido_plugin_journal_batch_t *batch;
  size_t next, field, number;
  const char *text;    // the next text; a NUL ends each
  uint64_t sequence;   // its number; with the batch's journal it names the entry for ever
  uint64_t at;         // when it was written, in milliseconds since the Unix epoch
  text_t kind;         // its kind, such as `transition`
  size_t fields_left;
} entries_t;

typedef struct {
  text_t name;
  const char *text; // NULL where it is a number
  double number;
} field_t;

static inline entries_t entries_of(const latido_plugin_journal_batch_t *batch) {
  return (entries_t){.batch = batch, .text = (const char *)batch->texts.ptr};
}

// Goes to the next field of the entry; false where there is none left.
static inline bool entries_field(entries_t *at, field_t *field) {
  const latido_plugin_journal_batch_t *batch = at->batch;
  if (at->fields_left == 0 || at->field >= batch->field.len) return false;
  at->fields_left--;
  size_t place = batch->field.ptr[at->field++];
  if (place >= batch->fields.len) return false;
  field->name = batch->fields.ptr[place].name;
  field->text = NULL;
  field->number = 0;
  if (batch->fields.ptr[place].holds == LATIDO_PLUGIN_JOURNAL_VALUE_KIND_TEXT) {
    field->text = at->text;
    at->text += strlen(at->text) + 1;
  } else if (at->number < batch->numbers.len) {
    field->number = batch->numbers.ptr[at->number++];
  }
  return true;
}

// Goes to the next entry, past what was not read of this one; false at the end.
static inline bool entries_next(entries_t *at) {
  const latido_plugin_journal_batch_t *batch = at->batch;
  field_t passed;
  while (entries_field(at, &passed)) {
  }
  if (at->next >= batch->sequences.len) return false;
  at->sequence = batch->sequences.ptr[at->next];
  at->at = batch->times.ptr[at->next];
  at->kind = batch->kinds.ptr[batch->kind_of.ptr[at->next]];
  at->fields_left = batch->fields_of.ptr[at->next];
  at->next++;
  return true;
}
