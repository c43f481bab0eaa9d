"""Fair shares: the order of active jobs along the tree of queues, and jobs that wait for a limit of their queue."""
