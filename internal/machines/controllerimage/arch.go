package controllerimage

import (
	"debug/elf"
	"fmt"
)

// Arch is the architecture, as Go names it ("amd64"), of a program that runs in an image by itself: an ELF file for
// Linux that needs no dynamic linker. For any other file the error says what it is instead, and what to build.
func Arch(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", refuseProgram(path, fmt.Sprintf("cannot be read as an ELF file (%v)", err))
	}
	defer func() { _ = file.Close() }() // only read
	if file.OSABI != elf.ELFOSABI_NONE && file.OSABI != elf.ELFOSABI_LINUX {
		return "", refuseProgram(path, fmt.Sprintf("is for another operating system (%s)", file.OSABI))
	}
	if file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN { // ET_DYN is a program that may be loaded anywhere, too
		return "", refuseProgram(path, fmt.Sprintf("is not an executable file (%s)", file.Type))
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return "", refuseProgram(path, "is dynamically linked")
		}
	}
	if libraries, err := file.ImportedLibraries(); err == nil && len(libraries) > 0 {
		return "", refuseProgram(path, fmt.Sprintf("is dynamically linked (%s)", libraries[0]))
	}
	if file.Class == elf.ELFCLASS64 && file.Data == elf.ELFDATA2LSB {
		switch file.Machine { //nolint:exhaustive // those that hosts can have
		case elf.EM_X86_64:
			return "amd64", nil
		case elf.EM_AARCH64:
			return "arm64", nil
		}
	}
	return "", refuseProgram(path, fmt.Sprintf("is for another architecture (%s)", file.Machine))
}

func refuseProgram(path, why string) error {
	return fmt.Errorf("%s %s; an image is made of a program built with "+
		"CGO_ENABLED=0 GOOS=linux GOARCH=amd64 or arm64", path, why)
}
