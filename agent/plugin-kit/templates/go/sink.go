// Package plugin is @NAME@: a sink for latido.
package plugin

import (
	"encoding/json"
	"strconv"
	"strings"

	"wit_component/latido"
	files "wit_component/latido_plugin_files"
	journal "wit_component/latido_plugin_journal"
	lifecycle "wit_component/latido_plugin_lifecycle"
	sink "wit_component/latido_plugin_sink"
)

// file is the granted file, by this plugin's name for it.
const file = "main"

// fullRetryMs is how long to wait when the disk is full: somebody has to make room first.
const fullRetryMs = 10_000

// Describe says what the plugin is.
func Describe() lifecycle.Description {
	return lifecycle.Description{
		Name:           "@NAME@",
		Version:        "0.1.0",
		Summary:        "Appends each entry to a file, as one line",
		SettingsSchema: `{"type":"object","additionalProperties":false,"properties":{}}`,
	}
}

// Configure takes the settings, a JSON object.
func Configure(text string) error {
	settings := map[string]any{}
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return latido.InvalidConfig("%v", err)
	}
	for key := range settings {
		return latido.InvalidConfig("unknown setting `%s`; this sink has none", key)
	}
	return nil
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// Write stores a batch.
func Write(batch journal.Batch) (sink.Acknowledgement, error) {
	var lines strings.Builder
	var durable uint64
	for entry := range Entries(batch) {
		line := strconv.FormatUint(entry.Sequence, 10) + " " + strconv.FormatUint(entry.At, 10) + " " + entry.Kind
		for _, field := range entry.Fields {
			line += " " + field.Name + "=" + shown(field.Value)
		}
		lines.WriteString(oneLine.Replace(line))
		lines.WriteByte('\n')
		durable = entry.Sequence
	}
	// Delivery is at least once: what is not acknowledged comes again.
	acknowledged := sink.Acknowledgement{Durable: durable}
	if lines.Len() == 0 {
		return acknowledged, nil
	}
	appended := files.Append(file, lines.String())
	if appended.IsOk() {
		return acknowledged, nil
	}
	switch wrong := appended.Err(); wrong.Tag() {
	case files.FileErrorDenied:
		return acknowledged, latido.Denied("%s", wrong.Denied())
	case files.FileErrorFull:
		return acknowledged, latido.RetryAfter(fullRetryMs)
	default:
		return acknowledged, latido.Retry("%s", wrong.Failed())
	}
}

func shown(value any) string {
	if number, is := value.(float64); is {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return value.(string)
}

// Flush asks to make durable soon what is buffered: nothing is.
func Flush() error { return nil }
