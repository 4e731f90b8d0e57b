// bits_and_blooms.go - the Go side of tests/test_foreign_programs.py
//
//	bits_and_blooms make binary|json N P FILE < KEYS    a filter of the lines
//	bits_and_blooms ask  binary|json 0 0 FILE < KEYS    prints those that may be in
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/bits-and-blooms/bloom"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func write(f *bloom.BloomFilter, form, path string) {
	to, err := os.Create(path)
	check(err)
	if form == "json" {
		text, err := f.MarshalJSON()
		check(err)
		_, err = to.Write(text)
		check(err)
	} else {
		_, err = f.WriteTo(to)
		check(err)
	}
	check(to.Close())
}

func read(form, path string) *bloom.BloomFilter {
	f := bloom.New(1, 1)
	if form == "json" {
		text, err := os.ReadFile(path)
		check(err)
		check(json.Unmarshal(text, f))
	} else {
		from, err := os.Open(path)
		check(err)
		_, err = f.ReadFrom(from)
		check(err)
	}
	return f
}

func main() {
	verb, form, path := os.Args[1], os.Args[2], os.Args[5]
	n, err := strconv.ParseUint(os.Args[3], 10, 64)
	check(err)
	p, err := strconv.ParseFloat(os.Args[4], 64)
	check(err)
	keys := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	if verb == "make" {
		f := bloom.NewWithEstimates(uint(n), p)
		for keys.Scan() {
			f.Add(keys.Bytes())
		}
		write(f, form, path)
	} else {
		f := read(form, path)
		for keys.Scan() {
			if f.Test(keys.Bytes()) {
				fmt.Fprintln(out, keys.Text())
			}
		}
	}
	check(keys.Err())
	check(out.Flush())
}
