package cfg

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ApprovalStore keeps approvals as files, one for each path and hash, in a
// directory of 0700. An approval is made and found by its name alone, so that
// many processes may share the directory without a lock. Several contents of one
// file may be approved, as its branches are.
type ApprovalStore struct{ dir string }

// NewApprovalStore returns the store in dir, which is made with the first
// approval.
func NewApprovalStore(dir string) *ApprovalStore { return &ApprovalStore{dir} }

var _ Approvals = (*ApprovalStore)(nil)

type approval struct {
	Path string `json:"path"`
	Hash string `json:"hash"`
}

func (s *ApprovalStore) file(path, hash string) string {
	name := sha256.Sum256([]byte(path + "\x00" + hash))
	return filepath.Join(s.dir, hex.EncodeToString(name[:])+".json")
}

// Approved implements Approvals. What cannot be read is not approved, and a nil
// store approves nothing.
func (s *ApprovalStore) Approved(path, hash string) bool {
	if s == nil {
		return false
	}
	a, err := readApproval(s.file(path, hash))
	return err == nil && a == approval{path, hash}
}

// Approve remembers the content with that hash of the file at path, both as
// Pending has them.
func (s *ApprovalStore) Approve(path, hash string) error {
	if path == "" || hash == "" {
		return errors.New("approve: both the path and the hash of a project file are needed")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("approve %s: %w", path, err)
	}
	data, err := json.Marshal(approval{path, hash})
	if err != nil {
		return fmt.Errorf("approve %s: %w", path, err)
	}
	file := s.file(path, hash)
	temporary := file + "." + rand.Text() + ".tmp"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("approve %s: %w", path, err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return errors.Join(fmt.Errorf("approve %s: %w", path, err), os.Remove(temporary))
	}
	return nil
}

// Revoke forgets every approval of the file at path.
func (s *ApprovalStore) Revoke(path string) error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("revoke the approval of %s: %w", path, err)
	}
	for _, entry := range entries {
		file := filepath.Join(s.dir, entry.Name())
		a, err := readApproval(file)
		if err != nil || a.Path != path {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("revoke the approval of %s: %w", path, err)
		}
	}
	return nil
}

func readApproval(file string) (approval, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return approval{}, err
	}
	var a approval
	if err := json.Unmarshal(data, &a); err != nil {
		return approval{}, err
	}
	return a, nil
}
