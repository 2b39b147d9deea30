package shell

import "testing"

func TestFullScreenKnowsTheFormsThatEndByThemselves(t *testing.T) {
	for script, want := range map[string]string{
		"vim x": "vim", "vi": "vi", "view -R x": "view", "nvim x": "nvim", "vimdiff a b": "vimdiff", "watch ls": "watch",
		"vim -c 'set nu' x": "vim", "vim +10 x": "vim", "vim -R -- +q": "vim", `v\im x`: "vim", "/usr/bin/vim x": "vim",
		"env A=1 vim x": "vim", "sudo -E vim x": "vim", "sh -c 'vim x'": "vim", "cd x && vim y": "vim", "ls | vim -": "vim",
		"(vim x)": "vim", "{ vim x; } >y": "vim", "time vim x": "vim", "echo a; false || nohup vim x &": "vim",
		"watch --interval 1 ls": "watch",

		"vim -es x": "", "vim -Es -c 'g/a/d' -c wq x": "", "vim -e x": "", "vim --version": "", "vim -h": "", "vi +q x": "",
		"vim +wqa! x": "", "vim -c '%s/a/b/' -c 'wq' x": "", "vim -c '%s/a/b/|x' x": "", "vim +:qa": "", "nvim --headless x": "",
		"nvim -l x.lua": "", "watch --help": "", "watch -v": "",
		"less x": "", "top": "", "nano x": "", "grep vim x": "", "echo 'vim x'": "", "vimtutor": "", "apt install vim": "",
		"if [ -t 0 ]; then vim x; fi": "", "f() { vim x; }": "", "$EDITOR x": "", "vim x )": "", "": "",
	} {
		if got := FullScreen(script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
