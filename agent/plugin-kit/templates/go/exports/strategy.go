// Package export_latido_plugin_strategy is written by `latido plugin build`.
package export_latido_plugin_strategy

import (
	plugin "author.example/plugin"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/latido"
	strategy "wit_component/latido_plugin_strategy"
	types "wit_component/latido_plugin_types"
)

func Decide(situation strategy.Situation) witTypes.Result[strategy.Decision, types.PluginError] {
	return latido.Answer(plugin.Decide(situation))
}

func Observe(output strategy.Output) witTypes.Result[witTypes.Option[strategy.Observation], types.PluginError] {
	observation, err := plugin.Observe(output)
	if err != nil || observation == nil {
		return latido.Answer(witTypes.None[strategy.Observation](), err)
	}
	return latido.Answer(witTypes.Some(*observation), nil)
}
