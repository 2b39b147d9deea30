//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what a set of processes has used so far.
type usage struct {
	cpu     time.Duration
	reaped  int64 // page faults of ended children: grows with each process that was started and ended
	living  string
	at      time.Time
	rssKiB  int64
	servers time.Duration // cpu of the tmux server
}

// tree are a process and its descendants.
func tree(root int) []int {
	children := make(map[int][]int)
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, n := range names {
		pid, fields, ok := stat(n)
		if ok {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], pid)
		}
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

func stat(path string) (pid int, fields []string, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, nil, false
	}
	s := string(b)
	pid, err = strconv.Atoi(s[:strings.IndexByte(s, ' ')])
	return pid, strings.Fields(s[strings.LastIndexByte(s, ')')+1:]), err == nil
}

// cpu sums the run time of a process's threads, in nanoseconds
// (Documentation/scheduler/sched-stats).
func cpu(pid int) time.Duration {
	var total time.Duration
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			continue
		}
		ns, _ := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
		total += time.Duration(ns)
	}
	return total
}

func rss(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, ok := strings.Cut(string(b), "VmRSS:")
	if !ok {
		return 0
	}
	n, _ := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	return n
}

func use(root, server int) usage {
	u := usage{at: time.Now(), servers: cpu(server)}
	for _, pid := range tree(root) {
		u.cpu += cpu(pid)
		u.rssKiB += rss(pid)
		u.living += fmt.Sprint(pid, " ")
		if _, f, ok := stat(fmt.Sprintf("/proc/%d/stat", pid)); ok {
			n, _ := strconv.ParseInt(f[8], 10, 64) // cminflt, field 11
			u.reaped += n
		}
	}
	if _, f, ok := stat(fmt.Sprintf("/proc/%d/stat", server)); ok {
		n, _ := strconv.ParseInt(f[8], 10, 64)
		u.reaped += n
	}
	return u
}

// percent is the share of one core between two looks, with the server's growth.
func (u usage) percent(since usage) float64 {
	spent := u.cpu - since.cpu + u.servers - since.servers
	return 100 * float64(spent) / float64(u.at.Sub(since.at))
}

// started says whether a process was started between two looks.
func (u usage) started(since usage) bool { return u.reaped != since.reaped || u.living != since.living }
