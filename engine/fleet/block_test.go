package fleet

import (
	"slices"
	"testing"
)

func TestBlockListLinesAreProgramsWithArgumentsAndOptions(t *testing.T) {
	rules, names := Blocks([]string{"shutdown", " ", "/sbin/reboot", "git push --force", "npm  install -g", "docker system prune"})
	if want := []string{"shutdown", "/sbin/reboot", "git push --force", "npm install -g", "docker system prune"}; !slices.Equal(names, want) {
		t.Fatalf("%q", names)
	}
	for _, c := range []struct {
		call []string
		want string
	}{
		{[]string{"shutdown", "-h", "now"}, "shutdown"},
		{[]string{"reboot"}, "/sbin/reboot"},
		{[]string{"git", "push", "origin", "--force"}, "git push --force"},
		{[]string{"git", "-C", "/src", "push", "--force=x"}, "git push --force"},
		{[]string{"npm", "--prefix", "/p", "install", "-fg", "x"}, "npm install -g"},
		{[]string{"docker", "system", "prune", "-a"}, "docker system prune"},
		{[]string{"git", "push"}, ""},
		{[]string{"npm", "install", "x"}, ""},
		{[]string{"docker", "system", "df"}, ""},
		{[]string{"echo", "shutdown"}, ""},
	} {
		got := ""
		for i, blocks := range rules {
			if blocks(c.call) {
				got = names[i]
			}
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.call, got, c.want)
		}
	}
}
