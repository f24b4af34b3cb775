package plugin

import (
	"strings"

	journal "wit_component/latido_plugin_journal"
)

// Entry is one entry of a batch.
type Entry struct {
	// Sequence is its number; with the batch's journal it names the entry for ever.
	Sequence uint64
	// At is when it was written, in milliseconds since the Unix epoch.
	At uint64
	// Kind is its kind, such as `transition`.
	Kind string
	// Fields is what it says.
	Fields []Field
}

// Field is one thing that an entry says.
type Field struct {
	// Name is its name: `subject`, `progress.done`.
	Name string
	// Value is a string or a float64.
	Value any
}

// Entries goes through a batch, the oldest entry first.
func Entries(batch journal.Batch) func(yield func(Entry) bool) {
	return func(yield func(Entry) bool) {
		texts := batch.Texts
		field, number := 0, 0
		for at, sequence := range batch.Sequences {
			entry := Entry{Sequence: sequence, At: batch.Times[at], Kind: batch.Kinds[batch.KindOf[at]]}
			for range batch.FieldsOf[at] {
				known := batch.Fields[batch.Field[field]]
				field++
				if known.Holds == journal.ValueKindText {
					text, rest, _ := strings.Cut(texts, "\x00")
					texts = rest
					entry.Fields = append(entry.Fields, Field{known.Name, text})
				} else {
					entry.Fields = append(entry.Fields, Field{known.Name, batch.Numbers[number]})
					number++
				}
			}
			if !yield(entry) {
				return
			}
		}
	}
}
