// Package export_latido_plugin_lifecycle is written by `latido plugin build`.
package export_latido_plugin_lifecycle

import (
	plugin "author.example/plugin"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/latido"
	lifecycle "wit_component/latido_plugin_lifecycle"
	types "wit_component/latido_plugin_types"
)

func Describe() lifecycle.Description { return plugin.Describe() }

func Configure(settings string) witTypes.Result[witTypes.Unit, types.PluginError] {
	return latido.Done(plugin.Configure(settings))
}
