// Package plugin is silence-go: a rule for latido.
package plugin

import (
	"encoding/json"
	"fmt"
	"strings"

	"wit_component/latido"
	lifecycle "wit_component/latido_plugin_lifecycle"
	log "wit_component/latido_plugin_log"
	rule "wit_component/latido_plugin_rule"
	types "wit_component/latido_plugin_types"
)

const schema = `{
	"type": "object",
	"additionalProperties": false,
	"properties": {
		"silence_s": {
			"type": "number",
			"minimum": 1,
			"default": 120,
			"description": "how long a subject may be silent, in seconds"
		}
	}
}`

var settings = struct {
	Silence float64 `json:"silence_s"`
}{120}

// Describe says what the plugin is.
func Describe() lifecycle.Description {
	return lifecycle.Description{
		Name:           "silence-go",
		Version:        "0.1.0",
		Summary:        "Finds what is silent for too long",
		SettingsSchema: schema,
	}
}

// Configure takes the settings, a JSON object.
func Configure(text string) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&settings); err != nil {
		return latido.InvalidConfig("%v", err)
	}
	if settings.Silence < 1 {
		return latido.InvalidConfig("`silence_s` is at least 1")
	}
	log.Write(log.LevelDebug, fmt.Sprintf("silent is what says nothing for %v s", settings.Silence))
	return nil
}

// Evaluate says which findings hold for these subjects.
func Evaluate(now uint64, subjects []types.Subject) ([]rule.Finding, error) {
	var findings []rule.Finding
	for _, subject := range subjects {
		if subject.Silence.IsNone() || float64(subject.Silence.Some()) < settings.Silence*1000 {
			continue
		}
		findings = append(findings, rule.Finding{
			Key:      "silent",
			Subject:  subject.Name,
			Severity: types.SeverityWarning,
			Summary:  fmt.Sprintf("%s has been silent for %d s", subject.Name, subject.Silence.Some()/1000),
		})
	}
	return findings, nil
}
