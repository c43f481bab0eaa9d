"""General tools without any knowledge of Kubernetes."""
