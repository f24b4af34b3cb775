// Package export_latido_plugin_rule is written by `latido plugin build`.
package export_latido_plugin_rule

import (
	plugin "author.example/plugin"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/latido"
	rule "wit_component/latido_plugin_rule"
	types "wit_component/latido_plugin_types"
)

func Evaluate(now uint64, subjects []types.Subject) witTypes.Result[[]rule.Finding, types.PluginError] {
	return latido.Answer(plugin.Evaluate(now, subjects))
}
