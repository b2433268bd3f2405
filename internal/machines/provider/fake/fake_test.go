package fake

import (
	"testing"

	"kubeone/internal/machines/provider"
)

// The fake only creates, finds and deletes, so that tests show what the controllers do for such a provider.
func TestItHasNothingOptional(t *testing.T) {
	t.Parallel()
	var p provider.Provider = New(nil, Options{})
	_, updates := p.(provider.Updater)
	_, validates := p.(provider.Validator)
	_, defaults := p.(provider.Defaulter)
	if updates || validates || defaults {
		t.Errorf("it updates: %t, validates: %t, defaults: %t", updates, validates, defaults)
	}
}
