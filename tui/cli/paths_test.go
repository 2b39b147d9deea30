package cli

import "testing"

func TestPathsFollowTheBaseDirectorySpecification(t *testing.T) {
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	p := PathsFrom(getenv, "/home/ada", "/tmp", "1000")
	want := Paths{
		State: "/home/ada/.local/state/cellmux", Database: "/home/ada/.local/state/cellmux/cellmux.db",
		Log: "/home/ada/.local/state/cellmux/cellmux.log", Settings: "/home/ada/.config/cellmux/config.toml",
		GlobalCell: "/home/ada/.config/devcell/devcell.toml", Runtime: "/tmp/cellmux-1000",
		TmuxSocket: "cellmux", Workspaces: "/home/ada/.devcell",
	}
	if p != want {
		t.Errorf("without variables: %+v", p)
	}
	env = map[string]string{"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/r", SocketVariable: "other"}
	p = PathsFrom(getenv, "/home/ada", "/tmp", "1000")
	if p.Database != "/s/cellmux/cellmux.db" || p.Settings != "/c/cellmux/config.toml" || p.Runtime != "/r/cellmux" || p.TmuxSocket != "other" {
		t.Errorf("with variables: %+v", p)
	}
	env = map[string]string{"XDG_STATE_HOME": "relative", "XDG_RUNTIME_DIR": "r"}
	p = PathsFrom(getenv, "/home/ada", "/tmp", "1000")
	if p.State != "/home/ada/.local/state/cellmux" || p.Runtime != "/tmp/cellmux-1000" {
		t.Errorf("relative variables must count as unset: %+v", p)
	}
}
