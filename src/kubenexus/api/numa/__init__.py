"""What a kubelet decides about NUMA: would it admit a pod, and which NUMA nodes would the pod get?"""
