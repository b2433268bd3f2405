package controllerimage

import (
	"debug/elf"
	"fmt"
)

// Arch returns the GOARCH of a statically linked ELF program for Linux: "amd64" or "arm64". For any other file, the
// error says what the file is and how to build the program instead.
func Arch(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", unusableError(path, fmt.Sprintf("cannot be read as an ELF file (%v)", err))
	}
	defer func() { _ = file.Close() }() // opened for reading only
	if file.OSABI != elf.ELFOSABI_NONE && file.OSABI != elf.ELFOSABI_LINUX {
		return "", unusableError(path, fmt.Sprintf("is for another operating system (%s)", file.OSABI))
	}
	if file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN { // ET_DYN includes position-independent programs
		return "", unusableError(path, fmt.Sprintf("is not an executable file (%s)", file.Type))
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return "", unusableError(path, "is dynamically linked")
		}
	}
	if libraries, err := file.ImportedLibraries(); err == nil && len(libraries) > 0 {
		return "", unusableError(path, fmt.Sprintf("is dynamically linked (%s)", libraries[0]))
	}
	if file.Class == elf.ELFCLASS64 && file.Data == elf.ELFDATA2LSB {
		switch file.Machine { //nolint:exhaustive // supported architectures of hosts
		case elf.EM_X86_64:
			return "amd64", nil
		case elf.EM_AARCH64:
			return "arm64", nil
		}
	}
	return "", unusableError(path, fmt.Sprintf("is for another architecture (%s)", file.Machine))
}

func unusableError(path, why string) error {
	return fmt.Errorf("%s %s; the image needs a program built with CGO_ENABLED=0 GOOS=linux GOARCH=amd64 or arm64",
		path, why)
}
