package agent

func codex() declaration {
	d := shell()
	d.name = "codex"
	d.title = "Codex"
	d.programs = []string{"codex"}
	d.shell = false
	return d
}
func gemini() declaration {
	d := shell()
	d.name = "gemini"
	d.programs = []string{"gemini"}
	d.shell = false
	return d
}
func opencode() declaration {
	d := shell()
	d.name = "opencode"
	d.programs = []string{"opencode"}
	d.shell = false
	return d
}
func grok() declaration {
	d := shell()
	d.name = "grok"
	d.programs = []string{"grok"}
	d.shell = false
	return d
}
