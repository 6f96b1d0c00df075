// Checks proofs of Flightchain with golang.org/x/mod, with which Go checks its own transparency log.
//
// Standard input has a proof of a transaction and one of consistency, as the service gives them, in an
// object of JSON. The first thing that is wrong is printed, and the exit status is 1 then.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type proof struct {
	Key         string
	Checkpoint  string
	Transaction string
	Header      string
	Path        []string
	History     []string
	From        int64
	FromRoot    string `json:"from_root"`
}

type header struct {
	Height int64
	First  int64  `json:"first_transaction"`
	Count  int64  `json:"transaction_count"`
	Root   string `json:"transactions_root"`
}

func main() {
	var given struct{ Transaction, Consistency proof }
	require(json.NewDecoder(os.Stdin).Decode(&given))
	checkTransaction(given.Transaction)
	checkConsistency(given.Consistency)
}

func checkTransaction(p proof) {
	size, root := signedTree(p)
	var block header
	var transaction struct {
		ID int64 `json:"TRANSACTION_ID"`
	}
	require(json.Unmarshal([]byte(p.Header), &block))
	require(json.Unmarshal([]byte(p.Transaction), &transaction))
	inBlock, err := hex.DecodeString(block.Root)
	require(err)
	leaf := tlog.RecordHash([]byte(p.Transaction))
	row := transaction.ID - block.First
	require(tlog.CheckRecord(hashes(p.Path), block.Count, tlog.Hash(inBlock), row, leaf))
	hash := sha256.Sum256([]byte(p.Header))
	entry := tlog.RecordHash(hash[:])
	require(tlog.CheckRecord(hashes(p.History), size, root, block.Height, entry))
}

func checkConsistency(p proof) {
	size, root := signedTree(p)
	old := hashes([]string{p.FromRoot})[0]
	require(tlog.CheckTree(hashes(p.Path), size, root, p.From, old))
}

// signedTree returns the size and the root that the checkpoint of a proof names.
func signedTree(p proof) (int64, tlog.Hash) {
	verifier, err := note.NewVerifier(p.Key)
	require(err)
	signed, err := note.Open([]byte(p.Checkpoint), note.VerifierList(verifier))
	require(err)
	lines := strings.Split(signed.Text, "\n")
	if lines[0] != verifier.Name() {
		require(fmt.Errorf("the origin is %q, not %q", lines[0], verifier.Name()))
	}
	var size int64
	_, err = fmt.Sscan(lines[1], &size)
	require(err)
	return size, hashes(lines[2:3])[0]
}

func hashes(texts []string) []tlog.Hash {
	found := make([]tlog.Hash, len(texts))
	for i, text := range texts {
		data, err := base64.StdEncoding.DecodeString(text)
		require(err)
		found[i] = tlog.Hash(data)
	}
	return found
}

func require(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
