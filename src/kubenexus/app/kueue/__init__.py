"""What the scheduler does beside Kueue: it answers AdmissionChecks."""
