"""A sparse Gaussian process for each joint (Hensman et al. 2013; gpytorch).

128 inducing points, a width for each input; the number of batches of 256, at most 240, is chosen.
"""

import gpytorch as gp
import torch
from descent import Descent


class Process(gp.models.ApproximateGP):
    def __init__(self, points, k):
        one, v = torch.Size([k]), gp.variational
        own = v.CholeskyVariationalDistribution(len(points), one)
        strategy = v.VariationalStrategy(self, points.repeat(k, 1, 1), own)
        super().__init__(v.IndependentMultitaskVariationalStrategy(strategy, k))
        kernel = gp.kernels.RBFKernel(ard_num_dims=points.shape[1], batch_shape=one)
        kernel.lengthscale = points.shape[1] ** 0.5
        self.kernel = gp.kernels.ScaleKernel(kernel, batch_shape=one)
        self.mean = gp.means.ZeroMean(one)
        self.likelihood = gp.likelihoods.MultitaskGaussianLikelihood(k)

    def forward(self, x):
        return gp.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


class Method(Descent):
    BATCH, RATE = 256, 0.02

    def make(self, rows):
        points = self.scaled.X[rows][torch.randperm(len(rows))[:128]]
        return Process(points, self.scaled.T.shape[1])

    def loss(self, model, batch, n):
        bound = gp.mlls.VariationalELBO(model.likelihood, model.train(), n)
        return -bound(model(self.scaled.X[batch]), self.scaled.T[batch])

    def outputs(self, model, rows, scaled):
        with gp.settings.skip_posterior_variances():
            return model.eval()(scaled.X[rows]).mean
