"""The cases. Each public function of these modules takes an `Api` and asserts what every server must answer."""
