"""Ranks that are threads of one process: the model of one alone, to the bit."""

import threading
import unittest

import hollownet
import numpy as np


class Ranks(unittest.TestCase):
    def test_threads_as_ranks(self):
        size = 2
        x = np.random.default_rng(0).standard_normal((300, 2)) @ np.array([[1, 0.5], [0, 1]])
        given, together = [b""] * size, threading.Barrier(size)
        scores, failures = [None] * size, []

        def fit():
            model = hollownet.Density(members="flow", iters=6, batch=130, hidden=8, width=8, features=4, threads=1)
            return model.fit(x).score_samples(x)

        def work(rank):
            def gather(mine):
                given[rank] = mine
                together.wait(60)
                parts = list(given)
                together.wait(60)
                return parts

            try:
                with hollownet.ranks(rank, size, gather):
                    scores[rank] = fit()
            except Exception as error:
                failures.append(error)
                together.abort()

        workers = [threading.Thread(target=work, args=(k,)) for k in range(size)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])
        alone = fit()
        for score in scores:
            np.testing.assert_array_equal(score, alone)

    def test_failures(self):
        x = np.random.default_rng(0).standard_normal((100, 2))
        with self.assertRaises(ValueError), hollownet.ranks(2, 2, lambda mine: [mine, mine]):
            pass
        with hollownet.ranks(0, 2, lambda mine: 1 / 0), self.assertRaises(hollownet.HollowError):
            hollownet.Density(members="flow", iters=2).fit(x)


if __name__ == "__main__":
    unittest.main()
