"""NUMATopology: pods go where their kubelet admits them, and to NUMA nodes that suit them."""
