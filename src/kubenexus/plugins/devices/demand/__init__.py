"""The demand-driven form of ResourceFragmentationScore."""
