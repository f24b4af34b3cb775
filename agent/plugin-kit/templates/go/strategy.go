// Package plugin is @NAME@: a strategy for latido.
package plugin

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/latido"
	lifecycle "wit_component/latido_plugin_lifecycle"
	strategy "wit_component/latido_plugin_strategy"
	types "wit_component/latido_plugin_types"
)

const schema = `{
	"type": "object",
	"additionalProperties": false,
	"properties": {
		"attempts_max": {
			"type": "integer",
			"minimum": 1,
			"default": 5,
			"description": "how many attempts may end before a person is asked"
		}
	}
}`

var settings = struct {
	AttemptsMax int `json:"attempts_max"`
}{5}

// Describe says what the plugin is.
func Describe() lifecycle.Description {
	return lifecycle.Description{
		Name:           "@NAME@",
		Version:        "0.1.0",
		Summary:        "Launches a job again until it has died too often",
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
	if settings.AttemptsMax < 1 {
		return latido.InvalidConfig("`attempts_max` is at least 1")
	}
	return nil
}

// Decide says how the work goes on.
func Decide(situation strategy.Situation) (strategy.Decision, error) {
	ended := 0
	for _, attempt := range situation.Attempts {
		if attempt.Outcome.IsSome() {
			ended++
		}
	}
	if ended >= settings.AttemptsMax {
		return strategy.MakeDecisionHold(fmt.Sprintf("%d attempts have ended", ended)), nil
	}
	return strategy.MakeDecisionLaunch(situation.Command), nil
}

// Observe says what new output tells of the work: a line such as `50%` says how far it is.
func Observe(output strategy.Output) (*strategy.Observation, error) {
	for at := len(output.Lines) - 1; at >= 0; at-- {
		digits, is := strings.CutSuffix(strings.TrimSpace(output.Lines[at]), "%")
		percent, err := strconv.ParseFloat(digits, 64)
		if !is || err != nil || !(percent >= 0 && percent <= 100) {
			continue
		}
		return &strategy.Observation{
			Progress: witTypes.Some(types.Progress{Fraction: witTypes.Some(percent / 100)}),
			Quiet:    strategy.QuietKindNone,
		}, nil
	}
	return nil, nil
}
